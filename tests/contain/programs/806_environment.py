# threat: 1.8-environment
# attack: read the caller's environment secrets and the host's name
# expect: status=ok
# control: environment utsns
# bare: secret
import os
import socket

for name, value in os.environ.items():
    print(f"{name}={value}")
    if name.startswith(("CONTAIN_", "SSH_", "SUDO_", "XDG_", "DBUS_", "PYTEST_")):
        print("PWNED: the caller's variable", name, "is set")
if os.environ["BAIT_HOST"] in (os.uname().nodename, socket.gethostname()):
    print("PWNED: this is the host's name:", os.uname().nodename)
print("held")
