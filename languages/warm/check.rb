# Run in a copy of a zygote: whether what programs ask of Ruby works there. Ends with 0, or with what does not.
require 'io/console'
require 'json'
require 'securerandom'
require 'socket'
require 'tempfile'
require 'timeout'

def check(name)
  raise "#{name} does not work" unless Timeout.timeout(5) { yield }
end

spun = 0
check('switching threads') { thread = Thread.new { loop { spun += 1 } }; sleep 0.01 until spun > 1000; thread.kill.join }
check('a queue') { queue = Queue.new; Thread.new { queue << 42 }; queue.pop == 42 }
check('a timeout') { begin; Timeout.timeout(0.01) { loop {} }; rescue Timeout::Error; true; end }
check('random numbers') { rand != rand && Random.rand != Random.new(0).rand && SecureRandom.hex != SecureRandom.hex }
check('JSON') { JSON.parse(JSON.dump({ 'a' => [1, 2.5, nil] })) == { 'a' => [1, 2.5, nil] } }
check('a process') { IO.popen(['sh', '-c', 'cat; exit 3'], 'r+') { |io| io.write('text'); io.close_write; io.read == 'text' } && $?.exitstatus == 3 }
check('a fork') { pid = fork { exit!(7) }; Process.wait2(pid)[1].exitstatus == 7 }
check('a signal') { got = false; trap('USR1') { got = true }; Process.kill('USR1', $$); sleep 0.001 until got; true }
check('a file') { Tempfile.create { |file| file.write('text'); file.rewind; file.read == 'text' } }
check('a socket') { one, other = UNIXSocket.pair; one.write('text'); other.readpartial(9) == 'text' }
check('a fiber') { Fiber.new { Fiber.yield 1 }.resume == 1 }
check('collecting garbage') { GC.start; GC.stat(:count) > 0 }
