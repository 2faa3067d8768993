# threat: 1.1-plant
# attack: leave start-up files, .pth and cached bytecode, dotfiles and cron jobs for a later run or the host
# expect: status=ok
# stages: plant find
# bare: unsafe writes start-up files
places="$HOME /work /tmp /dev/shm /var/tmp /root /etc /etc/cron.d /etc/profile.d /var/spool/cron /var/spool/cron/crontabs \
/usr/local/bin /usr/local/lib /usr/lib/python3/dist-packages /usr/lib/python3.11 /usr/lib/python3.11/__pycache__ \
/usr/local/lib/python3.11/dist-packages /usr/lib/node_modules /usr/share /opt /lib/systemd/system /run"
if [ "$1" = plant ]; then
    for place in $places; do
        for name in sitecustomize.py .bashrc .profile; do
            [ -e "$place/$name" ] || echo "# $MARK" 2>/dev/null >"$place/$name"
        done
        echo "$MARK" 2>/dev/null >"$place/contain-$MARK.pth"
    done
    echo held
    exit 0
fi
for place in $places; do
    for file in "$place/contain-$MARK.pth" "$place/sitecustomize.py" "$place/.bashrc" "$place/.profile"; do
        grep -qs "$MARK" "$file" && echo "PWNED: $file is there from the earlier run"
    done
done
echo held
