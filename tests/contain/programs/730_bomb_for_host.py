# threat: 1.7-decompression
# attack: leave a decompression bomb among the collected files
# expect: status=ok; files=bomb.gz; host-rss<64m; raw<4m
# limits: --collect *.gz
import gzip

with gzip.open("bomb.gz", "wb") as bomb:
    for _ in range(64):
        bomb.write(bytes(1 << 20))
print("held")
