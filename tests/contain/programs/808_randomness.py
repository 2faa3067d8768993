# threat: 1.8-randomness
# attack: find the same random numbers, hash seed or addresses in two runs
# expect: status=ok
# twice: differ
# bare: no two plain processes differ as well
import os
import random
import tempfile
import uuid

print("random", random.random(), random.getrandbits(64))
print("hash", hash("cordon"))
print("address", id(object()))
print("urandom", os.urandom(8).hex())
print("uuid", uuid.uuid4())
print("name", tempfile.mktemp())
print("canary", open("/proc/self/auxv", "rb").read()[-64:].hex())
print("held")
