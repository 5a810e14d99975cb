#!/bin/sh
# base-images.sh looks up the digests of the base images of deploy/ in the registry, and prints them as NAME=image:tag@digest. Keep the
# output: the same file builds the same images. Needs docker with buildx.
set -eu
resolve() {
  digest=$(docker buildx imagetools inspect --format '{{.Manifest.Digest}}' "$2")
  case "$digest" in
    sha256:*) echo "$1=$2@$digest" ;;
    *) echo "$2: the registry names no digest" >&2; exit 1 ;;
  esac
}
resolve GOLANG_IMAGE golang:1.26-bookworm
resolve DEBIAN_IMAGE debian:bookworm-slim
resolve POSTGRES_IMAGE postgres:17-bookworm
resolve HAPROXY_IMAGE haproxy:3.2-alpine
