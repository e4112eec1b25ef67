# Prints what the proxy of the environment answers for the URL that is named.
exec 3<>"/dev/tcp/127.0.0.1/${http_proxy##*:}" || exit
printf 'GET %s HTTP/1.0\r\n\r\n' "$1" >&3
cat <&3
