# Run in a copy of a zygote: whether what programs ask of Bash works there. Ends with 0, or with what does not.
check() {
    [[ $2 == "$3" ]] && return
    echo "$1 does not work: $2" >&2
    exit 1
}
[[ -v BASH_ENV || -v CORDON_START || -v CORDON_LIBRARY || -v CORDON_ENTRY ]] && check 'hiding the way here' yes no
check 'the process id' "$$ $PPID" "$BASHPID 0"
check 'the user id' "$UID $EUID" "$(id -u) $(id -u)"
check 'the work directory' "$PWD" "$(pwd -P)"
check 'arguments' "$#" 0
check 'the name' "$0 ${BASH_SOURCE[0]}" 'main.sh main.sh'
check 'a pipe' "$(printf 'b\na\n' | sort | tr '\n' ' ')" 'a b '
check 'an exit status' "$(bash -c 'exit 3'; echo $?)" 3
check 'a subshell' "$( (exit 4); echo $?)" 4
check 'a job' "$(sleep 0.001 & wait $!; echo $?)" 0
check 'a trap' "$(trap 'echo got' USR1; kill -USR1 $BASHPID; echo on)" $'got\non'
check 'a here document' "$(cat <<< text)" text
check 'reading' "$(read -r a b <<< 'one two three'; echo "$b")" 'two three'
check 'random numbers' "$((RANDOM == RANDOM && RANDOM == RANDOM))" 0
check 'substituting a process' "$(cat <(echo text))" text
