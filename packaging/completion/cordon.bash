# Bash completion for cordon(1). Commands and options come from this file, languages from the program itself.

_cordon_languages() {
    "$1" languages --json 2>/dev/null | tr '{' '\n' | sed -n 's/.*"id": *"\([^"]*\)".*/\1/p'
}

_cordon_bench() {
    local values='--full --within --workload --runs --seconds --workers --gap --only --json --output --help'
    case $2 in
        --workload) values='all true bash python python-work pandas node ruby go' ;;
        --only) values='cordon peers' ;;
        -o | --output)
            mapfile -t COMPREPLY < <(compgen -f -- "$1")
            return ;;
        --within | --runs | --seconds | --workers | --gap) return ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$values" -- "$1")
}

_cordon_service() {
    local values='--data-dir --json --help'
    case $2 in
        --data-dir)
            mapfile -t COMPREPLY < <(compgen -d -- "$1")
            return ;;
        --config | --tls-cert | --tls-key)
            mapfile -t COMPREPLY < <(compgen -f -- "$1")
            return ;;
        --store) values='none hash full' ;;
        --log) values='error warn info debug' ;;
        *)
            case $3 in
                serve) values='--listen --data-dir --config --store --concurrency --tls-cert --tls-key --behind-proxy
                    --require-keys --log --set --check --help' ;;
                key) values="new ls rm $values" ;;
                history) values="--limit --language --status --key --since --until --format $values" ;;
                replay) values="--env-secret $values" ;;
                verify-ledger) values="--head $values" ;;
            esac ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$values" -- "$1")
}

_cordon() {
    local cur prev cmd i
    cur=${COMP_WORDS[COMP_CWORD]}
    prev=${COMP_WORDS[COMP_CWORD - 1]}
    cmd=${COMP_WORDS[1]}
    COMPREPLY=()

    if ((COMP_CWORD == 1)); then
        mapfile -t COMPREPLY < <(compgen -W 'run test batch languages doctor serve key history explain
            replay verify-ledger bench version help --help --version' -- "$cur")
        return
    fi

    case $cmd in
        help)
            mapfile -t COMPREPLY < <(compgen -W 'run test batch languages doctor serve key history explain replay
                verify-ledger bench version' -- "$cur")
            return ;;
        doctor)
            mapfile -t COMPREPLY < <(compgen -W '--json --pools --help' -- "$cur")
            return ;;
        languages | version)
            mapfile -t COMPREPLY < <(compgen -W '--json --help' -- "$cur")
            return ;;
        bench)
            _cordon_bench "$cur" "$prev"
            return ;;
        test | batch)
            local own='--tests --stop --parallel --language --code --file --stdin --env --wall --memory --json --quiet --help'
            [ "$cmd" = batch ] && own='--output --parallel --retry-failed --json --quiet --help'
            mapfile -t COMPREPLY < <(if [[ $cur == -* ]]; then compgen -W "$own" -- "$cur"; else compgen -f -- "$cur"; fi)
            return ;;
        serve | key | history | explain | replay | verify-ledger)
            _cordon_service "$cur" "$prev" "$cmd"
            return ;;
        run) ;;
        *) return ;;
    esac

    local values=''
    case $prev in
        -l | --language) values=$(_cordon_languages "${COMP_WORDS[0]}") ;;
        --profile) values='lightweight standard heavy' ;;
        --isolation) values='container' ;;
        --network) values='none' ;;
        --environment) values='host' ;;
        --on-output-limit) values='cut stop' ;;
        --sanitize) values='true false all' ;;
        --optional)
            values='userns pidns mountns netns ipcns utsns seccomp no_new_privs capabilities cgroup
                landlock cgroupns denial_reports own_uid io oom_floor' ;;
        --output-dir | --data-dir)
            mapfile -t COMPREPLY < <(compgen -d -- "$cur")
            return ;;
        --file | --mount)
            mapfile -t COMPREPLY < <(compgen -f -- "$cur")
            return ;;
        -c | --code | --stdin | --env | --env-secret | --collect) return ;;
        --wall | --cpu | --cpus | --memory | --processes | --disk | --inodes | --open-files | --file-size | --output)
            return ;;
    esac
    if [[ -n $values ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$values" -- "$cur")
        return
    fi

    # After the first word that is neither an option nor an option's argument, everything belongs to the program.
    for ((i = 2; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
            --json | --no-cache | --pty | --warm | --quiet | -q | --help | -h | --*=*) ;;
            --) break ;;
            -?*) ((i++)) ;;
            *) break ;;
        esac
    done
    if [[ $cur == -* ]] && ((i >= COMP_CWORD)); then
        mapfile -t COMPREPLY < <(compgen -W '--language --code --file --stdin --env --env-secret --no-cache --warm --profile --wall --cpu
            --cpus --memory --processes --disk --inodes --open-files --file-size --output --on-output-limit --isolation
            --network --environment --mount --pty --optional --json --quiet --collect --collect-all --output-dir --sanitize
            --data-dir --help' \
            -- "$cur")
        return
    fi
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
}

complete -o filenames -F _cordon cordon
