# threat: 1.2-symlink
# attack: put links to host secrets where the supervisor collects files
# expect: status=ok; files=good.txt
# limits: --collect *.txt --collect *.json --collect */*.txt --collect dir/** --collect root/etc/passwd
# control: mountns
# bare: no files are collected only from a cell
echo good >good.txt
ln -s "$BAIT_DIR/world.txt" out.txt
ln -s "$BAIT_DIR/private.txt" result.json
ln -s "$BAIT_DIR" dir
ln -s / root
ln -s /proc/self/environ env.txt
ln -s /proc/1/environ init.txt
ln -s ../../../../../../../.."$BAIT_DIR/world.txt" climb.txt
mkdir deep && ln -s "$BAIT_DIR/world.txt" deep/out.txt
ln -s good.txt inner.txt
echo held
