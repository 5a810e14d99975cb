// Package browser tests the web portal in a real Chromium, by clicks and keys, against the built
// binary and virtual hubs, and the TypeScript client in a page of its own. Every page of the portal
// must pass axe-core (WCAG A and AA), request only its own origin, and write nothing to the
// console.
//
// `make test` installs Chromium where it can (install.sh). Without Chromium the tests are skipped.
// axe-core is installed once from npm into test/artifacts; without it only its check is skipped.
// So are Lighthouse and the font of the pictures in testdata; without them their tests are skipped.
// The tests save a screenshot of a page on which they fail in test/artifacts/portal, and of each page
// that they check if HUBCLOUD_TEST_SCREENSHOTS is set. All share one Chromium.
//
// The package takes about three and a half minutes on two busy cores, 20 s of them for the
// dashboard under load. HUBCLOUD_TEST_LOAD_TIME=10m lengthens that test.
package browser
