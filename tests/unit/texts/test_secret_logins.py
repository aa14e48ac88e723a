"""Secrets of one command, one header or one key of YAML: what is masked of them, and what beside them never is."""

from __future__ import annotations

import re

from tests.tables import every

from signoff import secret_logins
from signoff.masking import mask

# One line for each command, and some for its ways of writing; `S3cret` is what goes.
LOGINS = [
    "mysqldump -u a -pS3cret db", "mariadb -pS3cret", "sshpass -pS3cret ssh h", "redis-cli -h x -a S3cret ping",
    "valkey-cli -a S3cret", "az login -u a -p S3cret", "oc login -p 'S3cret'", "curl -uana:S3cret h",
    "wget --user ana:S3cret h", "http -a ana:S3cret h", "openssl enc -k S3cret -in a", "openssl enc -pass pass:S3cret",
    "openssl pkcs12 -password pass:S3cret", "zip -P S3cret a.zip f", "zip -rP S3cret a.zip f", "unzip -PS3cret a.zip",
    "/usr/bin/zip -P 'S3cret' a.zip f", "7z a -pS3cret x.7z f", "7za x x.7z -pS3cret", "rar a -hpS3cret x.rar f",
    "ldapsearch -x -w S3cret -D cn=a", "ldapmodify -wS3cret", "ldappasswd -s S3cret", "smbclient //h/s -U ana%S3cret",
    "smbclient -Uana%S3cret //h/s", "smbget --user=ana%S3cret x", "rpcclient -U 'ana%S3cret' h", "lftp -u ana,S3cret h",
    "lftp -e 'open -u ana,S3cret h'", "ftp -u ana,S3cret h", "xfreerdp /u:a /p:S3cret /v:h", "xfreerdp3 /p:'S3cret'",
    "mongo -u a -p S3cret", "mongodump -pS3cret", "keytool -list -storepass S3cret", "keytool -x -srckeypass S3cret",
    "jarsigner -keypass S3cret", "pscp -pw S3cret a h:", "https -a ana:S3cret h",
    "ssh-keygen -t rsa -N S3cret -f k", "ssh-keygen -p -P S3cret -f k", "gh secret set X --body S3cret",
    "fly secrets set A=S3cret", "kubectl create secret generic s --from-literal=k=S3cret",
    "kubectl create secret generic s --from-literal 'k=S3cret'", "htpasswd -b f ana S3cret", "htpasswd -nb ana S3cret",
    "htpasswd -cbB f ana S3cret", "net use Z: \\\\h\\s /user:dom\\ana S3cret", "net use Z: \\\\h\\s S3cret /user:ana",
    "net user ana S3cret /add", "sqlcmd -S h -U sa -P S3cret", "plink -ssh -pw S3cret h", "psftp -pw S3cret h",
    "nmcli dev wifi connect s password S3cret", "wpa_passphrase home S3cret",
    "security add-generic-password -a a -w S3cret", "aws configure set aws_secret_access_key S3cret",
    "npm config set //r/:_authToken S3cret", "A=b sudo zip -P S3cret a.zip f",
    # names that end in pass
    "DB_PASS=S3cret", "dbPass: S3cret", "pass: S3cret", "{user: a, pass: S3cret, host: b}", '"smtp_pass": "S3cret"',
    "PASS=S3cret ./run", "x --pass S3cret", "x --db-pass=S3cret", "java -Ddb.pass=S3cret", "userpass=S3cret",
    "pass: S3cret user: ana", "pass: S3cret horse",
    # headers
    "curl -H 'Cookie: a=S3cret' h", "Cookie: a=S3cret", "Set-Cookie: sid=S3cret; Path=/; HttpOnly",
    '{"Cookie": "a=S3cret"}', "curl -b 'a=S3cret' h", "curl -b a=S3cret h", "curl --cookie a=S3cret h",
    "Authorization: Token S3cret", 'Authorization: Digest username="ana", response="S3cret"',
    "authorization: AWS4-HMAC-SHA256 SignedHeaders=host, Signature=S3cret", "Authorization: S3cret",
    # SQL
    "psql -c \"ALTER USER ana WITH PASSWORD 'S3cret'\"", "mysql -e \"CREATE USER ana IDENTIFIED BY 'S3cret'\"",
    # YAML
    "cat > f <<X\npassword:\n  S3cret\nX", "cat > f <<X\n- password: |-\n    S3cret\n  user: ana\nX",
]  # fmt: skip


@every("text", LOGINS)
def test_a_secret_of_its_command_or_header_is_masked(text: str) -> None:
    assert mask(text) == text.replace("S3cret", "⟨6 masked⟩")


@every("command", ["keytool -list -storepass", "sudo zip -P", "/usr/bin/unzip -P", "A=b mongo -p", "redis-cli -a"])
def test_a_password_of_the_first_command_may_be_any_word(command: str) -> None:
    assert mask(f"{command} changeit x") == f"{command} ⟨8 masked⟩ x"
    behind = f"xargs {command.replace(' -', ' -x -', 1)} changeit x"
    assert mask(behind) == behind


def test_each_command_that_takes_a_password_has_a_case() -> None:
    for named, options in zip(secret_logins._NAMES, secret_logins._OPTIONS, strict=True):
        name = re.compile(rf"(?<![\w.-])(?:{named})(?![\w.-])")
        for option in options:
            ours = [text for text in LOGINS if (found := name.search(text)) and option.search(text, found.end())]
            assert ours, (named, option.pattern)


@every(
    "text",
    [
        # words that end in pass, and results
        *("compass=north", "bypass=Yes1", "byPass: Yes1", "first_pass=Yes1", "render-pass: Yes1", "sshpass: Usage1"),
        *("pass: 12 tests", "pass: 12", "pass=3 fail=0", "pass: all tests", "pass: parse the file"),
        *("pass: ok", "pass: true", "PASS: Test1", "--- PASS: TestX2 (0.00s)", "passed=A3", "passes: A3"),
        # the same letters of other options
        *("zip -r a.zip P1", "unzip -l a.zip", "7z x a.7z", "ldapsearch -x -b dc=a1", "smbclient -U ana //h/s"),
        *("ftp -n h1", "xfreerdp /v:h1", "mongo --port 27017", "keytool -list -storepass:env X1", "ssh-keygen -N ''"),
        *("kubectl create configmap s --from-literal=k=V1", "htpasswd -c f ana1", "net use", "net user ana1"),
        *("sqlcmd -S h1 -Q x", "curl -b jar1.txt h", "curl -c jar1.txt h", "tar -b A=1", "aws configure set region E1"),
        *("openssl rsa -passin env:P1", "openssl enc -pass file:P1", "zip -P $PASS a.zip f", "http -a1 h"),
        # headers without secrets
        *("Set-Cookie: ; Path=/A1; Expires=Wed1", "a cookie: A1", "Cookie: $SESSION"),
        # YAML that goes on with more keys or with code
        *("password:\nuser: A1", "password:\n\n  A1", "password:\n  name: A1", "secrets:\n  - A1", "secrets:\n  a1:\n"),
        *("if token:\n    B1()", "x = token:\n  B1", "- password:\n  user: A1", "echo 'password:\nB1'"),
        *("pass the token:\n  B1", "- token:\n  B1"),
    ],
)  # fmt: skip
def test_its_neighbour_is_shown(text: str) -> None:
    assert mask(text) == text
    assert mask(text, prose=True) == text


@every(
    "text",
    [
        # what another program of the same command runs
        "xargs zip -x xargs -P rm a.zip",
        "find . -exec ldapsearch x -w rm +",
        "X='fly secrets set' env LD_PRELOAD=Evil2.so ls",
        "env curl=1 sudo -b LD_PRELOAD=Evil2.so ls",
        # a command behind a cookie
        "curl -H Cookie:$A; LD_PRELOAD=Evil2.so ls",
        "sh -c 'Cookie: ; LD_PRELOAD=Evil2.so ls'",
        "bash -c -H 'Cookie: ; LD_PRELOAD=Evil2.so ls'",
        'curl -H "Cookie: $(LD_PRELOAD=Evil2.so ls)"',
        "curl -H Cookie: LD_PRELOAD=$X; A=Evil2 ls",
        # the lines of a text are commands
        "password:\n  reboot",
        "password: |\n  Deploy2 now",
        "cat <<X\npassword: |\n  Deploy2 now\nX",
        "sh <<X\npassword:\n  Deploy2\nX",
        "password:\n  Deploy2",
        "cat <<X; $C\npassword:\n  Deploy2\nX",
        "cat > f <<X\npassword:\n  reboot\nX",
    ],
)
def test_what_runs_beside_such_a_secret_is_shown(text: str) -> None:
    assert mask(text) == text


@every(
    "text, masked",
    [
        ("pass: correct horse", "pass: ⟨7 masked⟩ horse"),
        ("Cookie: a=b1; theme=dark", "Cookie: a=⟨2 masked⟩; theme=⟨4 masked⟩"),
        ("password:\n  hunter", "password:\n  ⟨6 masked⟩"),
        ("secret: |\n  line one\n\n  b2\nuser: a", "secret: |\n  ⟨4 masked⟩ ⟨3 masked⟩\n\n  ⟨2 masked⟩\nuser: a"),
        ('"password":\n   "a1"', '"password":\n   "⟨2 masked⟩"'),
        ("token: >-\n  a1\n  $(rm x) y\n", "token: >-\n  ⟨2 masked⟩\n  $(rm x) y\n"),
    ],
)
def test_in_what_is_no_command_all_of_it_is_masked(text: str, masked: str) -> None:
    assert mask(text, prose=True) == masked


def test_a_cookie_between_quotes_is_masked_to_its_end() -> None:
    assert mask("curl -H 'Cookie: a=b1; c=d2' h; e=f3") == "curl -H 'Cookie: a=⟨2 masked⟩; c=⟨2 masked⟩' h; e=f3"
    assert mask("curl -H 'Cookie: a=b1; c=d2' h | sh") == "curl -H 'Cookie: a=⟨2 masked⟩; c=d2' h | sh"
    assert mask("curl -H Cookie:a=b1; c=d2") == "curl -H Cookie:a=⟨2 masked⟩; c=d2"
