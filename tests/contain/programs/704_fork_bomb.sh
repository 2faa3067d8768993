# threat: 1.7-forks
# attack: the classic fork bomb
# expect: status=ok|nonzero_exit|signaled|wall_limit|process_limit|cpu_limit|memory_limit; silent; procs<400; ends<8s
# limits: --processes 50 --wall 2s
bomb() { bomb | bomb & }
bomb
wait
sleep 5
