#!/bin/sh
# --- Start MAAS 1.0 script metadata ---
# name: 60-nodetune-guard
# title: Checks that keep jobs away
# description: Runs the gating checks of nodetune's guard.
# script_type: testing
# hardware_type: node
# timeout: 00:10:00
# packages: {url: "https://mirror.example.org/nodetune/nodetune-guard_0.2.0_all.deb"}
# results:
#   verdict: {title: Verdict, description: What the guard says}
# --- End MAAS 1.0 script metadata ---
# Without the NVIDIA driver in the testing image the verdict about GPUs is inconclusive, and the result is degraded.
said=$(/usr/lib/nodetune/guard/check)
case $? in
    0) status=passed code=0 ;;
    1) status=failed code=1 ;;
    2) status=degraded code=0 ;;
    *) status=failed code=1 said="the guard did not run: is its package installed?" ;;
esac
echo "$said"
if [ -n "${RESULT_PATH:-}" ]; then
    quoted=$(printf '%s' "$said" | sed "s/'/''/g")
    printf "status: %s\nresults:\n  verdict: '%s'\n" "$status" "$quoted" > "$RESULT_PATH"
fi
exit $code
