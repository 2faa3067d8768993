# Fish completion for cordon(1). Commands and options come from this file, languages from the program itself.

function __cordon_languages
    cordon languages --json 2>/dev/null | tr '{' '\n' | sed -n 's/.*"id": *"\([^"]*\)".*/\1/p'
end

set -l commands run languages doctor bench version help
set -l run '__fish_seen_subcommand_from run'
set -l bench '__fish_seen_subcommand_from bench'

complete -c cordon -n "not __fish_seen_subcommand_from $commands" -f
complete -c cordon -n "not __fish_seen_subcommand_from $commands" -a run -d 'Run a program in a fresh cell'
complete -c cordon -n "not __fish_seen_subcommand_from $commands" -a languages -d 'List the languages that can be run'
complete -c cordon -n "not __fish_seen_subcommand_from $commands" -a doctor -d 'Tell what this machine can enforce'
complete -c cordon -n "not __fish_seen_subcommand_from $commands" -a bench -d 'Measure Cordon beside other runners'
complete -c cordon -n "not __fish_seen_subcommand_from $commands" -a version -d 'Print the version'
complete -c cordon -n "not __fish_seen_subcommand_from $commands" -a help -d 'Show the help of a command'
complete -c cordon -n '__fish_seen_subcommand_from help' -f -a 'run languages doctor bench version'
complete -c cordon -n '__fish_seen_subcommand_from languages doctor version' -f -l json -d 'Print an object'
complete -c cordon -n '__fish_seen_subcommand_from doctor' -f -l pools -d 'Tell what waiting cells hold'
complete -c cordon -s h -l help -d 'Show the help'

complete -c cordon -n $run -x -s l -l language -a '(__cordon_languages)' -d 'Language id or alias'
complete -c cordon -n $run -x -s c -l code -d 'The program itself'
complete -c cordon -n $run -r -l file -d 'Copy a host file into the work directory'
complete -c cordon -n $run -r -l stdin -d 'What the program reads: TEXT or @FILE'
complete -c cordon -n $run -x -l env -d 'Set an environment variable'
complete -c cordon -n $run -x -l env-secret -d 'Set one that must not be shown'
complete -c cordon -n $run -l no-cache -d 'Compile anew'
complete -c cordon -n $run -l warm -d 'Make a waiting cell first and run in that'
complete -c cordon -n $run -x -l profile -a 'lightweight standard heavy' -d 'Limits to begin with'
complete -c cordon -n $run -x -l wall -d 'Time on the clock'
complete -c cordon -n $run -x -l cpu -d 'Processor time'
complete -c cordon -n $run -x -l cpus -d 'Share of processors'
complete -c cordon -n $run -x -l memory -d 'Memory of all its processes and files'
complete -c cordon -n $run -x -l processes -d 'Processes and threads'
complete -c cordon -n $run -x -l disk -d 'Bytes in /work, /tmp and /dev/shm'
complete -c cordon -n $run -x -l inodes -d 'Files and directories'
complete -c cordon -n $run -x -l open-files -d 'Open files of one process'
complete -c cordon -n $run -x -l file-size -d 'Size of any one file'
complete -c cordon -n $run -x -l output -d 'Bytes kept of each stream'
complete -c cordon -n $run -x -l on-output-limit -a 'cut stop' -d 'At the output limit'
complete -c cordon -n $run -x -l isolation -a container -d 'Isolation level'
complete -c cordon -n $run -x -l network -a none -d 'Network mode'
complete -c cordon -n $run -x -l environment -a host -d 'The files it sees'
complete -c cordon -n $run -r -l mount -d 'Show a host directory or file: SRC:DST[:rw]'
complete -c cordon -n $run -x -l optional -d 'Tolerate a missing control' \
    -a 'userns pidns mountns netns ipcns utsns seccomp no_new_privs capabilities cgroup landlock cgroupns denial_reports own_uid'
complete -c cordon -n $run -l json -d 'Print one result object'
complete -c cordon -n $run -s q -l quiet -d 'Do not say why a program was stopped'
complete -c cordon -n $run -x -l collect -d 'Return matching files'
complete -c cordon -n $run -x -l output-dir -a '(__fish_complete_directories)' -d 'Write collected files beneath'
complete -c cordon -n $run -x -l sanitize -a false -d 'Redaction of output'

complete -c cordon -n $bench -f
complete -c cordon -n $bench -x -l workload -a 'all true bash python python-work pandas node ruby go' -d 'What is run'
complete -c cordon -n $bench -x -l runs -d 'Runs of each for the latency'
complete -c cordon -n $bench -x -l seconds -d 'How long each throughput is measured'
complete -c cordon -n $bench -x -l workers -d 'How many runs at once'
complete -c cordon -n $bench -x -l gap -d 'Pause before each run of the second series, in ms'
complete -c cordon -n $bench -x -l only -a 'cordon peers' -d 'Who takes part'
complete -c cordon -n $bench -l json -d 'Print one object instead of the table'
complete -c cordon -n $bench -r -s o -l output -d 'Write the object to a file as well'
