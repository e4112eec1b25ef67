"""Which words behind a program's name mean that something is lost, published or a key is shown."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_LOST: Final = r"""
terraform tofu terragrunt pulumi cdk cdktf sst  : destroy|apply (.* )?-destroy|state rm|stack rm
terraform tofu terragrunt                       : apply (.* )?--?auto-approve|workspace delete
terragrunt sst                                  : remove
kubectl oc k3s                                  : delete|drain|replace (.* )?--force
kubectl oc k3s                                  : apply (.* )?--prune
helm                                            : uninstall|delete|rollback
docker podman nerdctl                           : (system|volume|container|image|network) prune
docker podman nerdctl                           : (builder|buildx) prune|volume rm|stack rm
docker podman nerdctl                           : swarm leave|secret rm|context rm|system reset
docker podman nerdctl docker-compose            : (down|rm)( .*)? (--volumes|--rmi.*|-\w*v)
aws                  : s3 rm( .*)? --recursive|s3 rb|s3 (sync|mv)( .*)? --(delete|recursive)
aws                  : [\w-]+ (batch-)?(delete|terminate|remove|purge|deregister|destroy)(-[\w-]+)?
aws                  : kms schedule-key-deletion
gsutil s3cmd mc rclone azcopy s5cmd             : rm|rb|del|delete|deletefile|purge|sync|remove
gcloud az doctl hcloud linode-cli ibmcloud oci  : delete(-batch)?|destroy|purge|terminate|rm
scw openstack eksctl tkn argocd influx          : delete|destroy|purge|terminate
bq                                              : rm
flux                                            : uninstall|delete
consul nomad                                    : delete|job stop (.* )?-purge|system gc
gh glab hub                                     : delete|delete-asset|archive|secret set
gh glab hub                                     : api (.* )?(-X ?|--method[ =])(DELETE|delete)
gh glab hub                                     : pr merge (.* )?--admin
dropdb dropuser pg_dropcluster pg_resetwal      : .*
mysqladmin                                      : drop
heroku fly flyctl vercel netlify firebase       : (\S*:)?(destroy|delete|remove|rm|reset)
wrangler railway supabase neonctl eb amplify    : (\S*:)?(destroy|delete|remove|rm|reset|terminate)
railway                                         : down
serverless sls sam                              : remove|delete
rails rake                                      : db:(drop|reset|purge|migrate:reset|schema:load)\S*
artisan                                         : migrate:(fresh|reset|refresh)|db:wipe
mix                                             : ecto\.(drop|reset)
manage.py                                       : flush|reset_db|sqlflush|clean_db
alembic                                         : downgrade base
prisma                                          : migrate reset|db push (.* )?--force-reset
sequelize knex typeorm diesel sqlx              : db:(drop|migrate:undo:all)|schema:drop
diesel sqlx                                     : database (drop|reset)
vagrant multipass minikube kind k3d             : destroy|delete|purge
lxc incus virsh                                 : destroy|delete|undefine
pass bw op vault etcdctl                        : rm|remove|delete|destroy|del|revoke|disable
rabbitmqctl                                     : reset|force_reset|delete_\w+|purge_queue
redis-cli valkey-cli                            : del|unlink|flushall|flushdb
kafka-topics                                    : --delete
velero borg restic                              : delete|prune|forget
hg                                              : purge|strip|update (.* )?(-\w*C\w*|--clean)
hg                                              : revert (.* )?--all
svn                                             : revert (.* )?(-R|--recursive)|delete (.* )?\w+://\S+
jj                                              : abandon|op(eration)? abandon
btrfs                                           : subvolume delete
zypper brew snap flatpak                        : rm|remove|uninstall
emerge                                          : (.* )?(-\w*C\w*|--unmerge|--depclean)
nix-collect-garbage nix-store                   : (.* )?(-d|--delete.*|--gc)
tmutil defaults                                 : delete
dconf gsettings                                 : reset|reset-recursively
"""
_PUBLISHED: Final = r"""
npm pnpm yarn bun               : publish|unpublish|deprecate|dist-tag (rm|add)
npm pnpm yarn bun               : owner (add|rm)|token (create|revoke)
cargo                           : publish|yank|owner
twine anaconda conda            : upload
poetry uv flit hatch pdm maturin vsce ovsx  : publish|unpublish|upload
setup.py                        : upload
lerna changeset jsr deno dart flutter       : publish
semantic-release np             : .*
gem                             : push|yank|owner
rake                            : release
mvn mvnw                        : deploy|release:perform
gradle gradlew                  : :?(\w+:)*publish(?!ToMavenLocal)\w*
sbt                             : \+?(\w+/)?publish(?!Local|M2)\w*
dotnet                          : nuget (push|delete)
nuget                           : push|delete
docker podman buildah nerdctl   : push|manifest push|image push
skopeo                          : copy|delete|sync
helm                            : push
goreleaser                      : |release
gh glab hub                     : release (create|upload|edit)
pod                             : trunk (push|delete|deprecate)
mix                             : hex\.publish
cabal stack luarocks            : upload
"""
_SHOWN: Final = r"""
gpg gpg2                        : --export-secret-(sub)?keys?
gpg gpg2                        : --delete-(secret-)?(and-public-)?keys?
security                        : dump-keychain|delete-[\w-]+|export|find-[\w-]+-password
pass gopass                     : (?!ls|list|find|git|version|help|insert|generate|init|-).+|show
secret-tool                     : lookup|search
op                              : read|item get|document get|inject|run
bw                              : get|export|list items
aws                             : configure export-credentials|sts (get-session-token|assume-role)
aws                             : secretsmanager (batch-)?get-secret-value|ecr get-login-password
aws                             : ssm get-parameters?(-by-path)? (.* )?--with-decryption
gcloud                          : auth (.* )?print-[\w-]*token|secrets versions access
az                              : account get-access-token|keyvault secret (show|download)
kubectl oc k3s                  : get (.* )?secrets?(/\S+)? (.* )?(-o.*|--output.*|--template.*)
kubectl oc k3s                  : config view (.* )?--raw\S*|create token
vault                           : (kv )?(get|read)|token create|login
heroku                          : config(:get)?|auth:token
gh glab                         : auth token|auth status (.* )?(-t|--show-token)
age rage                        : (.* )?(-d|--decrypt)
sops                            : (.* )?(-d|--decrypt)|decrypt|exec-env
ansible-vault                   : decrypt|view
npm pnpm yarn                   : config get \S*(_auth|_password|token)\S*
doppler infisical chamber       : secrets|export|read|run
"""


def _compiled(*tables: str) -> Mapping[str, re.Pattern[str]]:
    patterns: dict[str, list[str]] = {}
    for line in "".join(tables).strip().splitlines():
        names, _, pattern = line.partition(" : ")
        for name in names.split():
            patterns.setdefault(name, []).append(pattern.strip())
    return MappingProxyType(
        {
            name: re.compile(rf"(?:.* )?(?:{'|'.join(found)})(?: .*)?", re.DOTALL)
            for name, found in patterns.items()
        }
    )


LOSSES: Final = _compiled(_LOST, _PUBLISHED)
"""By program: its words, where something cannot be taken back."""
KEYS_SHOWN: Final = _compiled(_SHOWN)
"""By program: its words, where it prints keys, passwords or tokens."""
