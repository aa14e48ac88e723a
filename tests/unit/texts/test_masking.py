"""Secrets go, the action stays: what is masked, what never is, and that no trick with invisible characters helps."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.tables import every

from signoff.display import shown
from signoff.masking import mask, masks
from signoff.randomness import could_be_program, looks_like_path, looks_random
from signoff.secret_names import says_secret

GH = "ghp_0123456789abcdefghijABCDEFGHIJ1234569k"
KEY = "aB3xK9mQ2pL7vR5tY8uI1oP4sD6fG0hJzX"
SHA1 = "0123456789abcdef0123456789abcdef01234567"
MASK = re.compile(r"⟨([0-9,]+) masked⟩")


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (f"export GH={GH}", "export GH=gh⟨38 masked⟩9k"),
        (f"git clone https://{GH}@github.com/a/b", "git clone https://gh⟨38 masked⟩9k@github.com/a/b"),
        ("echo xoxb-123456789012-abcDEF", "echo xo⟨20 masked⟩EF"),
        ("echo xapp-1-A012-345-abcdef", "echo xa⟨18 masked⟩ef"),
        ("echo sk-proj-abc123def456ghi", "echo sk⟨19 masked⟩hi"),
        ("aws AKIAIOSFODNN7EXAMPLE", "aws AK⟨16 masked⟩LE"),
        ("k AIzaSyA1234567890abcdefghijklmnopqrstuv", "k AI⟨35 masked⟩uv"),
        ("g glpat-abcdefgh12345678", "g gl⟨18 masked⟩78"),
        ("n npm_abcdefghijklmnopqrstuvwxyz0123456789", "n np⟨36 masked⟩89"),
        ("j eyJhbGciOi.eyJzdWIi.SflKxw-x_y", "j ey⟨26 masked⟩_y"),
        ("curl -H 'Authorization: Bearer abcdef123456' u", "curl -H 'Authorization: Bearer ⟨12 masked⟩' u"),
        ('curl -H "authorization: ab cd"', 'curl -H "authorization: ⟨2 masked⟩ cd"'),
        ("Bearer abc12345 is old", "Bearer ⟨8 masked⟩ is old"),
        ("curl -H 'X-Api-Key: abc'", "curl -H 'X-Api-Key: ⟨3 masked⟩'"),
        ("DB_PASSWORD=hunter22x ./run.sh", "DB_PASSWORD=⟨9 masked⟩ ./run.sh"),
        ("export dbPassword='p$w;d'", "export dbPassword='⟨1 masked⟩$⟨1 masked⟩;⟨1 masked⟩'"),
        ('{"api_key": "a1b2c3", "max_tokens": 400}', '{"api_key": "⟨6 masked⟩", "max_tokens": 400}'),
        (r'{\"token\": \"abc\"}', r"{\"token\": \"⟨3 masked⟩\"}"),
        ('SECRET="correct horse" ./x', 'SECRET="⟨7 masked⟩ ⟨5 masked⟩" ./x'),
        ("x --password hunter2 --host db", "x --password ⟨7 masked⟩ --host db"),
        ("x --api-key=hunter2", "x --api-key=⟨7 masked⟩"),
        ('["x", "--token", "abc1"]', '["x", "--token", "⟨4 masked⟩"]'),
        ("mysql -u root -pS3cr3t db", "mysql -u root -p⟨6 masked⟩ db"),
        ("sshpass -p abc ssh h", "sshpass -p ⟨3 masked⟩ ssh h"),
        ("curl -u ana:hunter2 https://h", "curl -u ana:⟨7 masked⟩ https://h"),
        ("docker login -u a -p hunter2 r.io", "docker login -u a -p ⟨7 masked⟩ r.io"),
        ("openssl rsa -passin pass:abc1", "openssl rsa -passin pass:⟨4 masked⟩"),
        ("psql postgres://ana:p%40w@h/db", "psql postgres://ana:⟨1 masked⟩%⟨3 masked⟩@h/db"),
        ("curl https://api.telegram.org/bot123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw1/getMe",
         "curl https://api.telegram.org/bot123456789:AA⟨31 masked⟩w1/getMe"),
        ("x https://hooks.slack.com/services/T01/B02/abcDEF", "x https://hooks.slack.com/services/T01/B02/⟨6 masked⟩"),
        (f"send {KEY}", "send aB⟨30 masked⟩zX"),
        (f"curl https://h/reset/{KEY}/go", "curl https://h/reset/aB⟨30 masked⟩zX/go"),
        ("f d41d8cd98f00b204e9800998ecf8427e", "f d4⟨28 masked⟩7e"),
        (f"TOKEN={SHA1} x", "TOKEN=01⟨36 masked⟩67 x"),
    ],
)  # fmt: skip
def test_a_secret_is_masked(text: str, masked: str) -> None:
    assert mask(text) == masked


PEM = f"""-----BEGIN RSA PRIVATE KEY-----
Proc-Type: 4,ENCRYPTED
{KEY}
{KEY}
Ag1B
-----END RSA PRIVATE KEY-----
ls"""


@every("last", ["q9==", "Zm8=", "Ab", "a", "0", "abcd", "Ag1B="])
def test_the_last_line_of_a_private_key_is_masked(last: str) -> None:
    key = f"-----BEGIN PRIVATE KEY-----\n{KEY}\n{last}\n-----END PRIVATE KEY-----"
    for text in (key, key.replace("\n", "\\n"), f'"{key}"', key.replace("\n", " ")):
        masked = mask(text, prose=True)
        assert {KEY, last}.isdisjoint(re.split(r"\\n|[\s\"]+", masked))
        assert masked.count("masked") == 2
    assert mask(key.replace("-----END PRIVATE KEY-----", ""), prose=True).count("masked") == 2, "cut off"


def test_what_follows_a_key_that_was_cut_off_is_shown() -> None:
    text = f"-----BEGIN PRIVATE KEY-----\n{KEY}\nAb\n\nrm -rf AbstractFactory2Implementation\n"
    assert mask(text) == text.replace(KEY, "aB⟨30 masked⟩zX").replace("Ab\n", "⟨2 masked⟩\n")
    text = "-----BEGIN PRIVATE KEY-----\n" + "rm x\n" * 200 + "AbstractFactory2Implementation\n"
    assert mask(text) == text


@every("line", ["reboot", "rm Build2", "&& Build2", "rm -rf Build2/a", "Build2 now", "a" * 16])
def test_a_command_among_the_lines_of_a_private_key_is_shown(line: str) -> None:
    key = f"-----BEGIN PRIVATE KEY-----\n{KEY}\n{line}\nAb\n-----END PRIVATE KEY-----"
    assert mask(key) == key.replace(KEY, "aB⟨30 masked⟩zX")


def test_a_private_key_is_masked_line_by_line() -> None:
    assert mask(PEM).splitlines() == [
        "-----BEGIN RSA PRIVATE KEY-----",
        "Proc-Type: 4,ENCRYPTED",
        "aB⟨30 masked⟩zX",
        "aB⟨30 masked⟩zX",
        "⟨4 masked⟩",
        "-----END RSA PRIVATE KEY-----",
        "ls",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "rm -rf /home/ana/projects/my-very-long-directory-name/src/components",
        f"git show {SHA1}",
        f"git diff {SHA1}..{SHA1}",
        f"docker pull x@sha256:{'0123456789abcdef' * 4}",
        "x 123e4567-e89b-12d3-a456-426614174000",
        "kubectl delete pod payments-api-deployment-7d9f8b6c5d-x2x9z",
        "ls /nix/store/3k9x2m4p5q7r8s0t1v6w9y2z4a5b7c8d-glibc-2.38/lib",
        "python AbstractSingletonProxyFactoryBeanImplementationForTesting2",
        "curl -H 'Authorization: Bearer $TOKEN' -H \"X-Api-Key: ${KEY}\"",
        "PASSWORD=$(pass show db) ./run.sh",
        "PASSWORD= rm -rf /",
        "PASSWORD=reboot; $PASSWORD",
        'TOKEN="rm -rf /home"; eval "$TOKEN"',
        "${PASSWORD:-reboot}",
        "PASSWORD=/bin/rm",
        "x --token-file /run/secrets/x --secret=/etc/passwd --password -v",
        "mysql -u root -p db",
        "docker run -p 8080:80 x",
        "mkdir -pv a; psql -pfoo",
        "token = get_token(x); token = self.token; token=true; max_tokens=500",
        "a bearer certificate, basic authentication",
        "PWD=/x OLDPWD=y",
        "scikit-learn sk-estimator-hyperparameters-and-more",
        f"{GH} -rf /",
        f"sudo {GH} -rf /",
        f'true; "{GH}" -rf /',
        f"A=1 {KEY} -rf /",
        f"; {' ' * 200}{KEY} -rf /",
        "-----BEGIN PRIVATE KEY-----\nrm -rf /\nreboot\nhalt\n-----END PRIVATE KEY-----",
        "use std::Token::new; case token) ;; esac",
    ],
)
def test_what_is_done_is_never_masked(text: str) -> None:
    assert mask(text) == text


@every(
    "text",
    [
        # userinfo ends at every mark that could begin a command, and follows a scheme at the start of a word
        "echo x://a:x;{rm,-rf,src};@",
        "true a;true b;ls;echo x://a:x;deploy-prod;@",
        "cat x|tee ://a:b|sh;@",
        "echo 1://a:b2c@ _x://a:b2c@",
        *(f"echo x://a:x{mark}deploy-prod2{mark}@" for mark in ";|&{},!()<>\"'`$\\ \t\n"),
        *(f"echo x://a{mark}b:deploy-prod2@" for mark in ";|&{},!()<>\"'`$\\ \t\n"),
        # a value that runs by way of another variable, a reference, a pipe, an inner shell
        "TOKEN=rm;a=$TOKEN;$a -rf src",
        "SECRET='reboot';X=SECRET;${!X}",
        "TOKEN=reboot; printenv TOKEN | sh",
        "TOKEN=reboot sh -c '$TOKEN'",
        "declare -n r=TOKEN; TOKEN=reboot; $r",
        'TOKEN=Deploy2;a=$TOKEN;b="$a";$b -rf src',
        "SECRET='Deploy2';X=SECRET;${!X}",
        "TOKEN=Deploy2; printenv TOKEN | sudo bash",
        "TOKEN=Deploy2; echo $TOKEN |/bin/sh",
        "TOKEN=Deploy2 bash -lc '$TOKEN'",
        "TOKEN=Deploy2; $(printenv TOKEN)",
        "TOKEN=Deploy2; `echo $TOKEN` x",
        "declare -n r=TOKEN; TOKEN=Deploy2; $r",
        "TOKEN='rm src'; X=TOKEN; eval ${!X}",
        "TOKEN=deploy2; eval x; deploy2 y",
        "TOKEN=python3; env | sh",
        # the word behind an option, which xargs and its kin may run
        "xargs -a f --token rm -rf src",
        "xargs -a f --token 'rm' -rf src",
        "xargs --token bot python3 src",
        "sshpass -e xargs -p rm -rf src",
        "docker login $(xargs -p rm -rf src)",
        '["xargs", "--token", "rm", "-rf", "src"]',
        "xargs -a basic deploy-prod-now-for-everybody",
    ],
)
def test_a_value_that_runs_is_never_masked(text: str) -> None:
    assert mask(text) == text


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("DB_PASSWORD=hunter2x9 psql", "DB_PASSWORD=⟨9 masked⟩ psql"),
        ('DB_PASSWORD=hunter2x9; psql "$DB_PASSWORD" | sh', 'DB_PASSWORD=⟨9 masked⟩; psql "$DB_PASSWORD" | sh'),
        ("DB_PASSWORD=hunter2x9; $CMD", "DB_PASSWORD=⟨9 masked⟩; $CMD"),
        ("PASSWORD=hunter ./run.sh", "PASSWORD=⟨6 masked⟩ ./run.sh"),
        ("x --password S3cr3tValue", "x --password ⟨11 masked⟩"),
        ("mysql -pS3cret", "mysql -p⟨6 masked⟩"),
        ("sshpass -v -p S3cret ssh h", "sshpass -v -p ⟨6 masked⟩ ssh h"),
        ("curl https://user:pa55w0rd@host/", "curl https://user:⟨8 masked⟩@host/"),
        ("curl 'HTTPS://user:secret@host/'", "curl 'HTTPS://user:⟨6 masked⟩@host/'"),
        ("x=git+https://ana:hunter@h/x", "x=git+https://ana:⟨6 masked⟩@h/x"),
        ("export API_KEY=sk-abcdef123456789; $x", "export API_KEY=sk⟨14 masked⟩89; $x"),
        ("PASSWORD='   '; $x", "PASSWORD='   '; $x"),
        ("TOKEN=abcdefghijklmnopqrstu; $x", "TOKEN=ab⟨17 masked⟩tu; $x"),
    ],
)
def test_a_secret_stays_masked_beside_variables_and_shells(text: str, masked: str) -> None:
    assert mask(text) == masked


PROGRAMS = st.from_regex(r"[a-z][a-z_-]{0,18}", fullmatch=True).filter(lambda word: "masked" not in word)
WAYS = [
    "TOKEN={}; $TOKEN -rf src", "TOKEN={};a=$TOKEN;$a src", "X=TOKEN; TOKEN='{}'; ${{!X}}", "xargs --token {} src",
    "TOKEN={}; printenv TOKEN | sh", "echo x://a:x;{};@", "cat x|tee x://a:b|{};@", "TOKEN={} bash -c '$TOKEN x'",
    "declare -n r=TOKEN; TOKEN={}; $r", "echo x://a:{{{},-rf}};@",
]  # fmt: skip


@given(PROGRAMS, st.sampled_from(WAYS))
def test_a_program_is_shown_whichever_way_it_runs(program: str, way: str) -> None:
    text = way.format(program)
    assert mask(text) == text


@pytest.mark.parametrize(
    ("word", "program"),
    [("rm", True), ("deploy-prod", True), ("bin/run.sh", True), ("python3", True), ("python3.12", True),
     ("sha256sum", True), ("hunter2", False), ("Secret", False), ("a" * 20, True), ("a" * 21, False), ("", False)],
)  # fmt: skip
def test_what_could_be_a_program(word: str, program: bool) -> None:
    assert could_be_program(word) is program


def test_a_word_alone_on_its_line_is_data() -> None:
    assert mask(f"cat > f <<X\n{GH}\nX") == "cat > f <<X\ngh⟨38 masked⟩9k\nX"


def test_prose_has_no_command_words() -> None:
    assert mask(f"{GH} has expired", prose=True) == "gh⟨38 masked⟩9k has expired"


def test_a_mask_shows_its_ends_only_from_16_characters() -> None:
    assert mask("PASSWORD=abcdefghijklmno x") == "PASSWORD=⟨15 masked⟩ x"
    assert mask("PASSWORD=abcdefghijklmnop x") == "PASSWORD=ab⟨12 masked⟩op x"


@pytest.mark.parametrize("hidden", ["\u200b", "\u202e", "\r", "\x00", "\U000e0041", "⟨", "\udcff"])
def test_a_hidden_character_uncovers_nothing(hidden: str) -> None:
    for at in range(1, len(GH)):
        result = shown(f"echo {GH[:at]}{hidden}{GH[at:]} x")
        assert MASK.search(result)
        assert re.sub(r"⟨[^⟩]*⟩", "", result) == "echo  x"  # a divided secret shows nothing of its own


def test_a_secret_before_a_hidden_character_is_still_found() -> None:
    assert "gh⟨38 masked⟩9k" in shown(f"x {GH} \u200b")
    assert "0123456789" not in shown(f"x foo\u200b{GH}")


def test_nobody_can_imitate_a_mask() -> None:
    assert shown(f"rm ⟨36 masked⟩ {GH}") == "rm ⟨U+27E8⟩36 masked⟨U+27E9⟩ gh⟨38 masked⟩9k"


def test_the_text_after_a_mask_does_not_begin_a_line() -> None:
    assert shown(f"x {GH}\ty") == "x gh⟨38 masked⟩9k⟨TAB⟩y"
    assert shown(f"x {GH}\u0338") == "x gh⟨38 masked⟩9k⟨U+0338⟩"


SECRETIVE = st.lists(
    st.sampled_from([GH, KEY, "PASSWORD=", "--token ", "secret: ", "'", '"', "\\", "abc", "/bin/rm", " ", "\n", ";",
                     "|", "$", "$(", "&&", "://a:", "@", "Bearer ", "mysql -p", "\u200b", "⟨", "é", "=", "rm ", PEM]),
    max_size=25,
).map("".join)  # fmt: skip


@given(st.one_of(SECRETIVE, st.text(max_size=80)))
@example(f"PASSWORD=\u200b{GH}")
def test_a_mask_covers_only_the_characters_of_a_word(text: str) -> None:
    at = 0
    for covered in masks(text):
        assert at <= covered.start < covered.end
        word = text[covered.start : covered.end]
        assert re.fullmatch(r"[A-Za-z0-9_+/=.-]+", word)
        found = MASK.search(covered.shown)
        assert found
        shown_ends = covered.shown[: found.start()], covered.shown[found.end() :]
        assert shown_ends in (("", ""), (word[:2], word[-2:]))
        assert int(found[1].replace(",", "")) + len("".join(shown_ends)) == len(word)
        assert shown_ends == ("", "") or len(word) >= 16
        at = covered.end


@given(SECRETIVE)
def test_every_bracket_on_a_card_is_ours(text: str) -> None:
    escapes = re.compile(r"⟨(?:U\+[0-9A-F]{4,6}|CR|ESC|TAB|byte [0-9A-F]{2}|[0-9,]+ (?:spaces|tabs|masked))⟩")
    assert not set("⟨⟩") & set(escapes.sub("", shown(text)))


@given(SECRETIVE)
def test_operators_and_lines_are_all_there(text: str) -> None:
    kept = re.compile(r"[;|&<>()$`\n\"' ]")
    assert kept.findall(re.sub(r"⟨[^⟩]*⟩", "", shown(text))) == kept.findall(text)


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("DB_PASSWORD", True), ("password", True), ("--api-key", True), ("apiKey", True),
        ("AWS_SECRET_ACCESS_KEY", True), ("MYSQL_PWD", True),
        ("PGPASSWORD", True), ("authToken", True), ("_auth", True), ("Proxy-Authorization", True),
        ("PWD", False), ("max_tokens", False), ("tokenizer", False), ("SECRET_NAME", False),
        ("--password-stdin", False), ("token_count", False),
        ("author", False), ("secretary", False), ("keyboard", False), ("PASSWORD_FILE", False),
    ],
)  # fmt: skip
def test_names_that_say_secret(name: str, secret: bool) -> None:
    assert says_secret(name) is secret


@pytest.mark.parametrize(
    ("word", "path"),
    [("/bin/rm", True), ("./x", True), ("../9", True), ("src/main.py", True), ("a/b", False), ("abc", False),
     ("wJ9rX3tn/K7M9ENG/bPxRfi9", False)],
)  # fmt: skip
def test_what_looks_like_a_path(word: str, path: bool) -> None:
    assert looks_like_path(word) is path


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyz-_.", max_size=200))
def test_written_words_never_look_random(word: str) -> None:
    assert not looks_random(word)


SIZE = 200_000
HARD: dict[str, Callable[[int], str]] = {
    "blanks": lambda n: " " * n,
    "hidden": lambda n: "\u200b" * n,
    "marks": lambda n: "e" + "\u0301" * n,
    "brackets": lambda n: "⟨" * n,
    "tabs": lambda n: "x" + "\t" * n,
    "one word": lambda n: "a" * n,
    "jwt starts": lambda n: "eyJ-" * (n // 4),
    "issued starts": lambda n: "ghp_aaaaaaaa." * (n // 13),
    "names": lambda n: "token=" * (n // 6),
    "quoted names": lambda n: "token='" * (n // 7),
    "open quotes": lambda n: 'token="a b' * (n // 10),
    "nested paths": lambda n: "secret=/a/token=/b/" * (n // 19),
    "names in flags": lambda n: "--token " * (n // 8),
    "address starts": lambda n: "://a:" * (n // 5),
    "colons": lambda n: "://" + ":a" * (n // 2),
    "key starts": lambda n: "-----BEGIN PRIVATE KEY-----" * (n // 27),
    "commands": lambda n: "mysql -p" * (n // 8),
    "logins": lambda n: "curl -u a" + ":" * n,
    "random path": lambda n: "aB3xK9mQ2pL7/" * (n // 13),
    "command words": lambda n: "A=b " * (n // 4) + f"{GH} x",
    "split tokens": lambda n: "g\u200bhp_aaaaaaaaa " * (n // 14),
    "bearers": lambda n: "bearer " * (n // 7),
    "digits": lambda n: "1" * n,
    "joined emoji": lambda n: "👩\u200d" * (n // 2),
    "dollars": lambda n: "$" * n,
    "schemes": lambda n: "a://" * (n // 4),
    "long scheme": lambda n: "a" * n + "://a:b@",
    "pipes": lambda n: "|a " * (n // 3),
    "one pipe": lambda n: "|" + "a/" * (n // 2),
    "prints": lambda n: "echo " * (n // 5) + "|sh",
    "assigned chain": lambda n: "".join(f"a{i}=a{i + 1};" for i in range(n // 14)) + "$a0",
    "many commands": lambda n: ";a" * (n // 2) + "$",
    "key and blanks": lambda n: "-----BEGIN PRIVATE KEY-----\n" + " " * n + "-----END",
    "key cut off": lambda n: f"-----BEGIN PRIVATE KEY-----\n{KEY}\n" * (n // 63),
    "cookies": lambda n: "'Cookie: " * (n // 9),
    "cookie name": lambda n: "'Cookie: " + "a" * n,
    "given cookies": lambda n: "curl " + "-b a=b " * (n // 14),
    "passwords of archives": lambda n: "zip " + "-rrrP " * (n // 6),
    "places of passwords": lambda n: "htpasswd -b" + " -a" * (n // 3),
    "settings": lambda n: "aws configure set " + "a/token_" * (n // 8),
    "parameters": lambda n: "authorization: a=b " * (n // 38),
    "passes": lambda n: "pass: a " * (n // 8),
    "keys of YAML": lambda n: "'\ntoken:\n a" * (n // 11),
    "blocks of YAML": lambda n: "'\n" + "".join(" " * at + "token: |\n" for at in range(int((2 * n) ** 0.5))),
    "a block of YAML": lambda n: "'\ntoken: |\n" + " $(a) token: |\n" * (n // 15),
    "SQL": lambda n: "user a b c d e " * (n // 15),
}


@pytest.mark.timeout(30)
@pytest.mark.parametrize("hard", HARD.values(), ids=HARD.keys())
def test_work_grows_with_the_length_alone(hard: Callable[[int], str]) -> None:
    # Quadratic work on this size takes from a minute to hours, which the limit ends; linear takes half a second.
    result = shown(hard(SIZE))
    assert MASK.sub("", result) is not None
    assert len(result) <= 9 * SIZE
