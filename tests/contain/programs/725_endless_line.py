# threat: 1.7-output
# attack: write one line without an end until the deadline
# expect: status=wall_limit; silent; truncated=stdout; host-rss<64m; raw<1m; ends<8s
# limits: --output 64k --wall 1s
import os

while True:
    os.write(1, b"\xe2\x82" * 20000)
