"""Lists ways in which secrets stand in logs, scripts, configs and command lines, each with a made-up secret.

`FORMS`: (text with `{}` where the secret stands, secret). Every form is one that people paste; none is a real secret.
"""

from __future__ import annotations

HEX40 = "9f8e7d6c5b4a39281706f5e4d3c2b1a098765432"
AWS = "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEYab"
WORD = "S3cretP4ss"
LONG = "Zq8Lm2Xv9Bt4Rk7Wp1Ns6"

SHAPES = (
    *(
        "hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZ012345",
        "api_org_" + "AbCdEfGhIjKlMnOpQrStUv",
        "r8_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8S",
    ),
    *(
        "nvapi-" + "a1B2c3D4e5F6g7H8i9J0k1L2",
        "wandb_v1_" + "a1B2c3D4e5F6g7H8i9J0",
        "sk-" + "proj-a1B2c3D4e5F6g7H8i9J0",
        "sk-ant-" + "api03-a1B2c3D4e5F6",
    ),
    *(
        "gsk_" + "a1B2c3D4e5F6g7H8i9J0",
        "AIza" + "SyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q",
        "ya29." + "a0AfH6SMBx1y2z3w4v5u6",
        "GOCSPX-" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4",
    ),
    *(
        "AKIA" + "IOSFODNN7EXAMPLE",
        "ASIA" + "IOSFODNN7EXAMPLE",
        "LTAI" + "5tAbCdEfGhIjKlMn",
        "AKID" + "z8krbsJ5yKBZQpn74WFkmLPx3",
    ),
    *(
        "ghp_" + "0123456789abcdefABCDEF0123456789abcd",
        "github_pat_" + "11ABCDEFG0a1b2c3d4e5f6",
        "glpat-" + "a1B2c3D4e5F6g7H8i9J0",
        "gldt-" + "a1B2c3D4e5F6g7H8i9J0",
    ),
    *(
        "xoxb-" + "1234567890-abcdefghij",
        "xapp-" + "1-A0123456789-1234567890-abcdef0123",
        "pypi-" + "AgEIcHlwaS5vcmcCJDAwMDA",
        "npm_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8",
    ),
    *(
        "dop_v1_" + "0123456789abcdef0123456789abcdef",
        "hvs." + "CAESIJa1B2c3D4e5F6g7H8",
        "dapi" + "0123456789abcdef0123456789abcdef",
        "dckr_pat_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N",
    ),
    *(
        "sk_live_" + "a1B2c3D4e5F6g7H8i9J0k1L2",
        "rk_live_" + "a1B2c3D4e5F6g7H8i9J0k1L2",
        "whsec_" + "a1B2c3D4e5F6g7H8i9J0k1L2",
        "xai-" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6",
    ),
    *(
        "SG." + "a1B2c3D4e5F6g7H8i9J0kw.a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V",
        "pplx-" + "a1B2c3D4e5F6g7H8i9J0k1L2",
        "tvly-" + "a1B2c3D4e5F6g7H8i9J0k1L2",
        "jina_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3",
    ),
    *(
        "lin_api_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3",
        "ntn_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3",
        "shpat_" + "0123456789abcdef0123456789abcdef",
        "sq0csp-" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6",
    ),
    *(
        "AGE-SECRET-KEY-" + "1QYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQS",
        "1234567890:" + "AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw1",
        "ATATT3x" + "FfGF0a1B2c3D4e5F6g7H8i9J0",
        "fw_" + "a1B2c3D4e5F6g7H8i9J0k1L2",
    ),
    *(
        "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0In0.abc-defGHI",
        "figd_" + "a1B2c3D4e5F6g7H8i9J0k1L2",
        "phc_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6",
        "glsa_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6",
    ),
)
"""Known by their shape alone, whatever stands around them."""

NAMED = (
    # shells
    *(("export HF_TOKEN={}", WORD), ("HF_TOKEN='{}' bash run.sh", WORD), ("export DB_PASSWORD='{}'", "x8 P4ssQ two")),
    *(('HF_TOKEN="{}"', "ab&P4ssQ"), ("HF_TOKEN=$'{}'", "P4ss\\tQ9"), ("AWS_SECRET_ACCESS_KEY={}", "/" + AWS[1:])),
    *(
        ("AWS_SECRET_ACCESS_KEY={}", "%" + AWS[1:]),
        ("MY_SECRET={}", "$2b$10$" + LONG),
        ("declare -x WANDB_API_KEY={}", HEX40),
    ),
    *(
        ("setenv HF_TOKEN {}", WORD),
        ("set -gx OPENAI_API_KEY {}", WORD),
        ("$env:HF_TOKEN = '{}'", WORD),
        ("set HF_TOKEN={}", WORD),
    ),
    *(
        ("env WANDB_API_KEY={} python3 x.py", HEX40),
        ("docker run -e HF_TOKEN={} image", WORD),
        ("OPENAI_API_KEYS={}", f"{WORD},{LONG}"),
    ),
    *(
        ("MYSQL_PASS={}", WORD),
        ("DB_PASS='{}'", "a b c1"),
        ("db_pwd={}", WORD),
        ("SMTP_PASSWORD={}", WORD),
        ("REDIS_PWD={}", WORD),
    ),
    *(
        ("password={}", "12345"),
        ("PASSWORD={}", "hunter2"),
        ("export PGPASSWORD={}", WORD),
        ("export SSHPASS={}", WORD),
    ),
    *(
        ("export HF_TOKEN={}", "abcdefgh12\\\nijklmnop34"),
        ("read -s -p x TOKEN; TOKEN={}", WORD),
        ("MODELSCOPE_API_TOKEN={}", WORD),
    ),
    # command lines
    *(
        ("--hub_token {}", WORD),
        ("--hub-token={}", WORD),
        ("--api-key '{}'", "a b c9"),
        ("--wandb_key {}", HEX40),
        ("--use_wandb {}", HEX40),
    ),
    *(
        ("--use_wandb={}", HEX40),
        ("Namespace(use_wandb='{}', n=8)", HEX40),
        ("use_wandb: {}", HEX40),
        ("'use_wandb': '{}'", HEX40),
    ),
    *(
        ("sshpass -p {} ssh host", WORD),
        ("sshpass -p'{}' ssh host", WORD),
        ("docker login -u me -p {} reg.io", WORD),
        ("docker login --password {}", WORD),
    ),
    *(
        ("mysql -u root -p{} db", WORD),
        ("mysqldump -uroot -p{} db", WORD),
        ("curl -u user:{} https://x", WORD),
        ("curl --user user:{} https://x", WORD),
    ),
    *(
        ("curl -su 'user:{}' https://x", WORD),
        ("wget --http-password={} x", WORD),
        ("wandb login {}", HEX40),
        ("wandb login --host=https://x.y {}", HEX40),
    ),
    *(
        ("huggingface-cli login --token {}", WORD),
        ("hf auth login --token {}", WORD),
        ("swanlab login --api-key {}", WORD),
    ),
    *(
        ("swanlab login -k {}", LONG),
        ("git clone https://{}@github.com/a/b", LONG),
        ("pip install --index-url https://{}@pkgs.x.io/simple", LONG),
    ),
    *(
        ("ray start --redis-password={}", WORD),
        ("kubectl create secret generic x --from-literal=token={}", WORD),
        ("modelscope login --token {}", WORD),
    ),
    # headers and links
    *(
        ("Authorization: Bearer {}", "short1"),
        ("Authorization: Bearer {}", LONG),
        ("Authorization: Token {}", WORD),
        ("authorization: Basic {}", "dXNlcjpw"),
    ),
    *(
        ("-H 'Authorization: Bearer {}'", WORD),
        ('"Authorization": "Bearer {}"', WORD),
        ("x-api-key: {}", WORD),
        ("X-Auth-Token: {}", WORD),
    ),
    *(
        ("api-key: {}", WORD),
        ("Cookie: session={}", LONG),
        ("Set-Cookie: sid={}; Path=/", LONG),
        ("PRIVATE-TOKEN: {}", WORD),
    ),
    *(
        ("https://user:{}@host/x", WORD),
        ("https://user:{}@host/x", "p@ss9word"),
        ("https://{}@host.io/simple", LONG),
        ("https://oauth2:{}@gitlab.x/y", LONG),
    ),
    *(
        ("redis://:{}@10.0.0.1:6379", WORD),
        ("postgres://u:{}@db/x", WORD),
        ("mongodb+srv://u:{}@c.x.net", WORD),
        ("https://{}@o12.ingest.sentry.io/1", HEX40[:32]),
    ),
    *(
        ("https://hooks.slack.com/services/{}", "T0AB12CD3/B0AB12CD3/a1B2c3D4e5F6g7H8i9J0k1L2"),
        ("https://discord.com/api/webhooks/{}", "123456789012345678/" + LONG),
    ),
    *(
        ("https://discordapp.com/api/webhooks/{}", "123456789012345678/" + LONG),
        ("https://open.feishu.cn/open-apis/bot/v2/hook/{}", "1a2b3c4d-1a2b-1a2b-1a2b-1a2b3c4d5e6f"),
    ),
    *(
        ("https://open.larksuite.com/open-apis/bot/v2/hook/{}", "1a2b3c4d-1a2b-1a2b-1a2b-1a2b3c4d5e6f"),
        ("https://oapi.dingtalk.com/robot/send?access_token={}", HEX40),
    ),
    *(
        ("https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key={}", "1a2b3c4d-1a2b-1a2b-1a2b-1a2b3c4d5e6f"),
        ("https://x.webhook.office.com/webhookb2/{}", "1a2b3c4d-1a2b@1a2b/IncomingWebhook/0a1b2c3d4e5f"),
    ),
    *(
        ("https://b/x?X-Amz-Signature={}&y=1", HEX40),
        ("https://b/x?sig={}&sv=2", "abc%2Fdef"),
        ("https://api.x/?api_key={}&q=1", WORD),
        ("https://api.x/?token={}", WORD),
    ),
    *(
        ("https://api.telegram.org/bot{}/sendMessage", "1234567890:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw1"),
        ("https://x/y?AWSAccessKeyId={}", "AKIAIOSFODNN7EXAMPLE"),
    ),
    # Python
    *(
        ('os.environ["OPENAI_API_KEY"] = "{}"', WORD),
        ('os.getenv("HF_TOKEN", "{}")', WORD),
        ('os.environ.get("HF_TOKEN", "{}")', WORD),
    ),
    *(
        ('os.environ.setdefault("WANDB_API_KEY", "{}")', WORD),
        ("wandb.login(key='{}')", HEX40),
        ('wandb.login(key="{}", relogin=True)', HEX40),
    ),
    *(
        ("login(token='{}')", WORD),
        ('login("{}")', "hf_" + LONG),
        ('swanlab.login(api_key="{}")', WORD),
        ("OpenAI(api_key='{}')", "a b c9"),
    ),
    *(
        ("api_keys = ['{}']", WORD),
        ("HF_TOKEN: str = '{}'", WORD),
        ("dict(password='{}')", "two words9"),
        ("auth=('user', password='{}')", WORD),
    ),
    *(
        ('client_secret="{}"', WORD),
        ("openai.api_key = '{}'", WORD),
        ("token = f'{}'", WORD),
        ("password = b'{}'", WORD),
        ("secret_key=r'{}'", WORD),
    ),
    # YAML, JSON, TOML, INI, tables
    *(
        ("hub_token: {}", WORD),
        ("hub_token: '{}'", "a b c9"),
        ('{{"password": "{}"}}', "a b c9"),
        ('{{"hf_token": "{}", "n": 8}}', WORD),
    ),
    *(
        ('{{"name": "HF_TOKEN", "value": "{}"}}', WORD),
        ("- name: HF_TOKEN\n  value: {}", WORD),
        ('- name: WANDB_API_KEY\n  value: "{}"', HEX40),
    ),
    *(
        ("  - name: DB_PASSWORD\n    value: '{}'", "a b c9"),
        ('{{"Name": "OPENAI_API_KEY", "Value": "{}"}}', WORD),
        ("api_keys: [{}]", f"{WORD}, {LONG}"),
    ),
    *(
        ("api_keys:\n  - {}\n", WORD),
        ('"api_keys": ["{}"]', WORD),
        ("access_tokens = ['{}']", LONG),
        ("AccountKey={};EndpointSuffix=x", "a1B2c3D4e5F6g7H8+/9J0k1L2=="),
    ),
    *(
        ('"SecretAccessKey": "{}"', AWS),
        ('"SessionToken": "{}"', LONG),
        ("//registry.npmjs.org/:_authToken={}", LONG),
        ('"accessKeyId": "{}"', LONG),
    ),
    *(
        ('"privateKey": "{}"', LONG),
        ('"clientSecret":"{}"', WORD),
        ("SharedAccessKey={}", LONG),
        ('"refresh_token": "{}"', LONG),
        ('"id_token":"{}"', LONG),
    ),
    *(
        ("HF_TOKEN => {}", WORD),
        ("hf_token := {}", WORD),
        ("| hf_token | {} |", WORD),
        ("│ wandb_api_key │ {} │", HEX40),
        ("hf_token\t{}", WORD),
    ),
    *(
        ("aws_secret_access_key = {}", AWS),
        ("[default]\npassword = {}", "x y z9"),
        ("machine api.wandb.ai login user password {}", HEX40),
        ("_auth = {}", LONG),
    ),
    *(
        ("passphrase: {}", WORD),
        ("private_token = '{}'", WORD),
        ("webhook_secret: {}", WORD),
        ("encryption_key={}", LONG),
        ("jwt_secret={}", WORD),
    ),
    *(
        ('\'{{"auth": "{}"}}\'', LONG),
        ("requirepass {}", WORD),
        ("token: {}", LONG),
        ("key: {}", HEX40),
        ("secret: {}", WORD),
    ),
    *(
        ("+trainer.wandb.api_key={}", WORD),
        ("+runtime_env.env_vars.HF_TOKEN={}", WORD),
        ("env_vars: {{HF_TOKEN: {}}}", WORD),
        ('"env_vars": {{"WANDB_API_KEY": "{}"}}', HEX40),
    ),
    *(
        ('--runtime-env-json=\'{{"env_vars": {{"HF_TOKEN": "{}"}}}}\'', WORD),
        ('"{{\\"password\\": \\"{}\\"}}"', "a b c9"),
        ("ENV HF_TOKEN {}", WORD),
        ("ARG HF_TOKEN={}", WORD),
    ),
    # logs
    *(
        ("connecting with password: {}", "hunter2"),
        ("wandb: API key: {}", HEX40),
        ("Using API key {}", HEX40),
        ("login with token {}", LONG),
    ),
    *(
        ("(WorkerDict pid=7) HF_TOKEN={}", WORD),
        ("+ export WANDB_API_KEY={}", HEX40),
        ("INFO token='{}' loaded", WORD),
        ("secret={}", "%40abc9"),
    ),
    *(
        ("-----BEGIN PGP PRIVATE KEY BLOCK-----\n{}\n-----END PGP PRIVATE KEY BLOCK-----", "lQOYBF1a2b3c\nAAAA"),
        ("-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----", "MIIEow\nIBAAK"),
    ),
    *(
        ('"private_key": "-----BEGIN PRIVATE KEY-----{}-----END PRIVATE KEY-----\\n"', "\\nMIIEvQIBADANBg"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n-----END OPENSSH PRIVATE KEY-----", "b3BlbnNzaC1r"),
    ),
)
"""Known by what stands before them."""

FORMS = (*NAMED, *((text, shape) for shape in SHAPES for text in ("{}", "found ({}).")))
