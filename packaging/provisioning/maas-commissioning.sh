#!/bin/sh
# --- Start MAAS 1.0 script metadata ---
# name: 60-nodetune-facts
# title: Facts for nodetune
# description: Writes the facts of this machine, for nodetune audit --facts.
# script_type: commissioning
# timeout: 00:10:00
# packages: {url: "https://mirror.example.org/nodetune/nodetune-pull_0.2.0_all.deb"}
# --- End MAAS 1.0 script metadata ---
# The output of this script is the file of facts: maas PROFILE node-script-results read NODE name=60-nodetune-facts
set -eu
/usr/lib/nodetune/pull/collect
cat /var/lib/nodetune/facts/*.json
