# Runs test files with minitest and reports each test as a line of JSON. Arguments: the report, then the files.
require 'json'

report, *files = ARGV
ARGV.clear
OUT = File.open(report, 'w')

def tell(row)
  OUT.puts(JSON.generate(row))
  OUT.flush
end

begin
  require 'minitest'
rescue LoadError
  tell(missing: true)
  exit 3
end

# Beside the reporter that prints.
class CordonReporter < Minitest::AbstractReporter
  def record(result)
    status = result.passed? ? 'passed' : result.skipped? ? 'skipped' : 'failed'
    tell(name: "#{result.klass}##{result.name}", status: status, wall_ms: result.time * 1000,
         message: result.failures.map { |each| "#{each.message.scrub} (#{File.basename(each.location)})" }.join("\n"))
  end
end

module Minitest
  def self.plugin_cordon_init(_options)
    reporter << CordonReporter.new
  end
end

Minitest.extensions << 'cordon'
$LOAD_PATH.unshift(Dir.pwd)
broken = files.reject do |file|
  load File.expand_path(file)
  true
rescue Exception => error
  warn error.full_message(highlight: false)
  tell(name: file, status: 'failed', message: "#{error.class}: #{error.message}")
  false
end
require 'minitest/autorun'
Minitest.after_run { exit! 1 } unless broken.empty?
