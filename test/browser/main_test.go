package browser

import (
	"os"
	"testing"

	"hubcloud/test/harness"
)

func TestMain(m *testing.M) {
	// The tests wait for pages more than they compute.
	code := harness.Run(m, 3)
	if browser.stop != nil {
		browser.stop()
	}
	os.Exit(code)
}
