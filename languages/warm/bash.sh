# Read by bash for its BASH_ENV, before it opens the program: $CORDON_LIBRARY has the builtins by which it is copied, and each
# copy goes on from there when it has a program.
rm -f "$BASH_ENV"
hash -r
enable -f "$CORDON_LIBRARY" cordon_serve cordon_take
if cordon_serve; then # there is time: what programs use, so that its memory is there
    printf -v CORDON_START '%s %d' text $((6 * 7))
    [[ $CORDON_START == text* ]] && echo "$CORDON_START" > /dev/null
fi
cordon_take
enable -d cordon_serve cordon_take
cd /work
unset BASH_ENV CORDON_LIBRARY CORDON_ENTRY OLDPWD
export OLDPWD
eval "unset CORDON_START; $CORDON_START"
: bash # its $_, as of a shell that was just started
