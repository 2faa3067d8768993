#!/bin/bash
# What the guest offers, and that the rig itself works: `# fact` lines and checks in guest.py's form.
# probe.sh KIND, as the caller of that kind.
say() { echo "# $1: $2"; }
check() {
    local name=$1
    shift
    if "$@" >/dev/null 2>&1; then echo "ok $kind $name"; else echo "not ok $kind $name: $*"; fi
}

kind=$1
here=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)
say "$kind kernel" "$(uname -r), up $(cut -d' ' -f1 /proc/uptime) s"
say "$kind group" "$here: $(cat "$here/cgroup.controllers")"
check uid test "$(id -u)" = "$([[ $kind = root || $kind = outside ]] && echo 0 || echo 1000)"
[[ $kind = session || $kind = outside ]] ||
    check controllers grep -qw 'cpu.*memory.*pids' "$here/cgroup.controllers"
check user_namespace unshare -Ur true
check python python3 -c 'import ctypes, json; assert 6 * 7 == 42'
case $kind in
root)
    [ -d /sys/kernel/security/lsm ] || mount -t securityfs none /sys/kernel/security
    say 'security modules' "$(cat /sys/kernel/security/lsm)"
    check landlock grep -qw landlock /sys/kernel/security/lsm
    check mkdir mkdir "$here/probe" && rmdir "$here/probe" ;;
delegated) check mkdir_beside mkdir "$here/../probe" && rmdir "$here/../probe" ;;
session)
    say "$kind bus" "$DBUS_SESSION_BUS_ADDRESS"
    check user_manager systemctl --user show-environment
    check scope systemd-run --user --scope --quiet -p Delegate=yes bash -c 'mkdir /sys/fs/cgroup$(cut -c4- /proc/self/cgroup)/probe' ;;
undelegated) check no_mkdir bash -c "! mkdir $here/probe" ;;
esac
