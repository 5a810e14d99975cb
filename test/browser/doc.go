// Package browser tries the web portal as people do: with a real Chromium, by clicks and keys,
// against the built binary and hubs in software. Each page is held to what axe-core finds (WCAG A
// and AA), to asking nobody but its own origin, and to a quiet console.
//
// `make test` installs a Chromium where it can (install.sh). Where there is none the tests are
// skipped, and say so. axe-core comes from npm, once, into test/artifacts; where that cannot be,
// its check alone is skipped, and says so. Screenshots of every page lie in test/artifacts/portal
// afterwards.
//
// All of it takes about three and a half minutes of two busy cores, of which 20 s are the dashboard
// under load. HUBCLOUD_TEST_LOAD_TIME=10m watches it for as long as it says.
package browser
