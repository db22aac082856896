# verdict COMMAND...: what it says last on stderr, such as what --check found; its exit status.
{ said=$("$@" 2>&1 >&3); status=$?; } 3>&1
echo "$said" | tail -n 1
exit $status
