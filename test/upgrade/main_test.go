package upgrade

import (
	"os"
	"testing"

	"hubcloud/test/harness"
)

func TestMain(m *testing.M) {
	code := m.Run()
	harness.RemoveBinary()
	os.Exit(code)
}
