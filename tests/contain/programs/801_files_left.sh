# threat: 1.8-files
# attack: leave files in every writable place for the next run
# expect: status=ok
# stages: plant find
# control: mountns
# bare: pwned
places="$HOME /work /tmp /dev/shm /var/tmp /run /run/lock /dev /var/lock"
[ -n "$BARE" ] && places="$HOME /dev/shm"
for place in $places; do
    if [ "$1" = plant ]; then
        echo "$MARK" 2>/dev/null >"$place/contain-$MARK"
    elif [ -e "$place/contain-$MARK" ]; then
        echo "PWNED: $place/contain-$MARK is there from the earlier run"
        rm -f "$place/contain-$MARK"
    fi
done
echo held
