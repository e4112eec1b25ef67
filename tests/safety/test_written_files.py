"""Files that a program writes by its operands and options: the list of what always asks holds.

No command here is ever run.
"""

from itertools import product
from pathlib import Path

import pytest

from agent_tui.config import PermissionMode
from tests.safety.corpus import judge, make_workspace
from tests.support.rows import each_row

_ANYTHING_GOES = ("bash(*)",)
_ASKING: tuple[PermissionMode, ...] = ("ask", "accept-edits", "full")
_TARGETS = ("/etc/passwd", "/usr/lib/x.conf", "~/.bashrc", ".git/config", ".env", "sub/.env")
_FORMS = """
sed -i s/a/b/ {}
sed -i.bak s/a/b/ {}
sed -ni p {}
sed -Ei 's/a/b/' {}
sed -i -e s/a/b/ {}
sed -i -e s/a/b/ -- {}
sed -e s/a/b/ -i {}
sed --in-place s/a/b/ {}
sed --in-place=.bak s/a/b/ {}
sed --in-p s/a/b/ {}
sed --expression=s/a/b/ --in-place {}
sed -i s/a/b/ a.txt {}
sed -zsi s/a/b/ {}
sed -i -f script.sed {}
gsed -i s/a/b/ {}
/usr/bin/sed -i s/a/b/ {}
env sed -i s/a/b/ {}
timeout 5 sed -i s/a/b/ {}
bash -c 'sed -i s/a/b/ {}'
perl -i -pe s/a/b/ {}
perl -pi -e s/a/b/ {}
perl -pi.bak -e s/a/b/ {}
perl -0777 -i -pe s/a/b/ {}
ruby -i -pe x {}
awk -i inplace 1 {}
gawk --include=inplace 1 {}
sort -o {} a.txt
sort -o{} a.txt
sort -uo {} a.txt
sort -uo{} a.txt
sort a.txt -o {}
sort --output={} a.txt
sort --o {} a.txt
sort -k 2 --outp={} a.txt
echo x | tee {}
echo x | tee -a {}
echo x | tee a.txt {}
echo x | sponge {}
dd if=a.txt of={}
dd of={} bs=1
cp a.txt {}
cp -t {} a.txt
cp -at {} a.txt
cp --target-directory={} a.txt
cp --target-directory {} a.txt
cp --target={} a.txt
mv a.txt {}
mv -t {} a.txt
mv {} a.txt
install a.txt {}
install -m 755 a.txt {}
install -Dm755 a.txt {}
install -t {} a.txt
install -d {}
install -d {} x
ln -s a.txt {}
ln -sf a.txt {}
ln -st {} a.txt
rsync -a a.txt {}
truncate -s 0 {}
truncate --size=0 {}
truncate -s0 a.txt {}
touch {}
touch -d yesterday {}
chmod 600 {}
chown me {}
mkdir -p {}
patch {} x.diff
patch -o {} a.txt x.diff
patch --output={} a.txt x.diff
patch -d {} -i x.diff
split a.txt {}
uniq a.txt {}
gzip {}
xz -9 {}
tar -cf {} src
tar cf {} src
tar cvzf {} src
tar --file={} -c src
tar -xf x.tar -C {}
tar xfC x.tar {}
tar -xf x.tar --directory={}
tar --extract --file x.tar --dir {}
unzip x.zip -d {}
curl -o {} http://localhost
curl -sSLo {} http://localhost
curl --output {} http://localhost
curl -D {} http://localhost
wget -O {} http://localhost
wget -qO {} http://localhost
wget -P {} http://localhost
gcc -o {} a.c
gcc -o{} a.c
pandoc a.md --output {}
mytool --output={} a
mytool --out-file={} a
mytool --out {} a
ex -s -c wq {}
yq -i .a=1 {}
find . -fprint {}
find . -name x -fprintf {} %p
find . -fls {}
script -qc ls {}
script -c ls -O {}
mktemp -p {}
mktemp {}
openssl rand -out {} 9
bsdtar -xf x.tar -C {}
strace -o {} ls
cp -r a.txt b.txt {}
cp -- a.txt {}
cp a.txt -- {}
tee -- {}
dd "of={}"
sed -i "s/a/b/" "{}"
command sed -i s/a/b/ {}
\\sed -i s/a/b/ {}
if true; then sed -i s/a/b/ {}; fi
(sed -i s/a/b/ {})
ls && sed -i s/a/b/ {} || true
echo "$(sed -i s/a/b/ {})"
gofmt -w {}
shfmt -i 2 -w {}
clang-format -i {}
dos2unix {}
"""
_READING = """
find . -name a.txt -o -path /usr/share
script -qc "cp /usr/share/x a.txt" /dev/null
openssl x509 -in /usr/share/x -out a.txt
mktemp -d
curl -s -o /dev/null -w %{http_code} http://localhost
wget -qO /dev/stdout http://localhost
wget -qO - http://localhost
gcc -x c -o /dev/null a.c
make 2>&1 | tee /dev/stderr
sort -o - a.txt
cp "/usr/share/x" "$HOME/project/x"
sed -i '/usr/d' a.txt
sed -i -e '/etc/d' a.txt
sed -n -i.bak -e /lib/p a.txt
sed --in-place --expression='/bin/s/x/y/' a.txt
sed -f /usr/share/x.sed a.txt
sed -i -f /usr/share/x.sed a.txt
perl -i -pe '/usr/' a.txt
perl /usr/share/x.pl a.txt
perl -I /usr/share/perl -pe 1 /usr/share/doc/x
ruby /usr/share/x.rb
awk -f /usr/share/x.awk a.txt
cp /etc/hosts .
cp -t src /etc/hosts
install -m 755 /usr/bin/env src/env
ln -s /usr/bin/env
ln -s /usr/bin/env src/env
ln -st src /usr/bin/env
rsync -a /usr/share/doc/x src
truncate -r /usr/bin/env a.txt
touch -r /usr/bin/env a.txt
sort -T /var/tmp -o a.txt b.txt
dd if=/usr/bin/env of=a.txt
tar -cf a.tar -C /usr/share doc
tar -xf /usr/share/x.tar
tar xzf /usr/share/x.tgz -C src
unzip /usr/share/x.zip
unzip -l /usr/share/x.zip -d /usr
gzip -c /usr/share/x
zstd -dc /usr/share/x.zst
patch a.txt /usr/share/x.diff
patch --dry-run /usr/x < a.diff
split /usr/share/dict/words
split /usr/share/dict/words src/x
gcc -I/usr/include -L /usr/lib -o app a.c
gcc -I/usr/local/include/foo/o a.c
cmake -S . -B build -DCMAKE_INSTALL_PREFIX=/usr
python3 /usr/share/x.py /etc/hosts
curl -T /usr/share/x http://localhost
curl -b /usr/share/x -o a.txt http://localhost
diff -u /etc/hosts a.txt
mytool --outline /usr/share/x
mytool -i /usr/share/x
yq .a /usr/share/x.yaml
"""


def _lines(text: str) -> list[str]:
    return text.strip().splitlines()


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_workspace(tmp_path_factory.mktemp("written"))


@each_row("form", _lines(_FORMS))
def test_a_file_on_the_list_is_asked_about_however_it_is_named_as_written(
    form: str, workspace: Path
):
    for target, mode in product(_TARGETS, _ASKING):
        verdict = judge(workspace, form.format(target), mode, _ANYTHING_GOES)
        assert (verdict.decision, verdict.by) == ("ask", "protection"), (mode, target, verdict.why)


@pytest.mark.parametrize(
    "command",
    ["rm /dev/null", "mv a.txt /dev/null", "ln -sf a.txt /dev/null", "chmod 600 /dev/null"],
)
def test_the_null_device_is_written_but_not_replaced(command: str, workspace: Path):
    for mode in _ASKING:
        assert judge(workspace, command, mode, _ANYTHING_GOES).decision == "ask"


@each_row("command", _lines(_READING))
def test_a_program_may_read_the_system_and_write_the_folder(command: str, workspace: Path):
    for mode in _ASKING:
        verdict = judge(workspace, command, mode, _ANYTHING_GOES)
        assert verdict.decision == "allow", (mode, verdict.why)


@each_row(
    "command",
    [
        "cd /etc && sed -i s/a/b/ hosts",
        "cd /etc; echo x | tee hosts",
        "cd /usr/lib && patch -p1 < ~/x.diff",
        "cd /usr/local && tar xf ~/x.tar",
        "cd /usr/local && unzip ~/x.zip",
        "cd /usr/local/bin && wget http://localhost/x",
        "find /etc -name '*.conf' -exec sed -i s/a/b/ {} +",
        "find /etc -name '*.conf' -exec tee {} ';'",
        "find /etc /usr/lib -type f -execdir truncate -s 0 {} ';'",
        "find /etc -type f -exec perl -pi -e s/a/b/ {} +",
        "find /etc -name x -print0 | xargs -0 sed -i s/a/b/",
        "grep -rl old /etc | xargs sed -i s/old/new/",
        "grep -rl old /usr/lib | xargs -I{} cp a.txt {}",
        "ls /etc/*.conf | xargs -n1 tee",
        "fd conf /etc -x sed -i s/a/b/",
        "for f in /etc/*.conf; do sed -i s/a/b/ $f; done",
        'find /etc -name x | while read f; do sed -i s/a/b/ "$f"; done',
        "f=/etc/passwd; sed -i s/a/b/ $f",
        'd=/usr/local; cp a.txt "$d/bin/x"',
        "sed -i s/a/b/ $(ls /etc/*.conf)",
        "echo /etc/passwd | xargs tee",
    ],
)
def test_files_found_by_another_command_are_those_below_the_folders_it_names(
    command: str, workspace: Path
):
    for mode in _ASKING:
        verdict = judge(workspace, command, mode, _ANYTHING_GOES)
        assert (verdict.decision, verdict.by) == ("ask", "protection"), (mode, verdict.why)


@each_row(
    "command",
    [
        "grep -rl old src | xargs sed -i s/old/new/",
        "find src -name '*.py' -exec sed -i '/usr/d' {} +",
        "find . -newer /usr/bin/env -exec sed -i s/a/b/ {} +",
        "ls src | xargs -I{} cp /usr/share/x src/{}",
        "find /usr/share -name x -exec cp {} src ';'",
        "find /usr/share -name x | xargs cp -t src",
        "x=/usr/share/x; cp $x src/a",
        "x=/usr/share/x; grep -o $x a.txt",
        "x=/usr/share/x; y=src; cp $x $y",
        "for f in src/*.py; do sed -i s/a/b/ $f; done; ls /usr",
    ],
)
def test_files_found_in_the_folder_may_be_written(command: str, workspace: Path):
    for mode in _ASKING:
        verdict = judge(workspace, command, mode, _ANYTHING_GOES)
        assert verdict.decision == "allow", (mode, verdict.why)


@each_row(
    "command",
    [
        "cp a.txt sub/b.txt",
        "cp a.txt sub",
        "cp a.txt sub/",
        "cp -t sub a.txt",
        "mv src/app.py sub",
        "install -Dt sub a.txt",
        "ln -s ../a.txt sub/",
        "rsync -a a.txt sub",
        "sort -uosub/b.txt a.txt",
        "sort -uo sub/b.txt a.txt",
        "sed -i s/a/b/ sub/b.txt",
        "patch -d sub -i x.diff",
        "tar -C sub -xf x.tar",
        "cd sub && cp ../a.txt .",
        "cp a.txt link-dir",
    ],
)
def test_a_deny_rule_for_a_folder_holds_however_a_file_gets_there(command: str, workspace: Path):
    for mode in _ASKING:
        verdict = judge(workspace, command, mode, _ANYTHING_GOES, ("write(sub/**)",))
        assert verdict.decision == "deny", (mode, verdict.why)


@pytest.mark.parametrize("command", ["cp sub/b.txt src", "cp a.txt src", "cp sub.txt b.txt"])
def test_a_deny_rule_for_a_file_is_about_what_is_written(command: str, workspace: Path):
    verdict = judge(workspace, command, "full", (), ("write(sub/*.md)", "write(src/*.md)"))
    assert verdict.decision == "allow", verdict.why
