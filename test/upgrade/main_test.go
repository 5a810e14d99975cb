package upgrade

import (
	"fmt"
	"os"
	"testing"

	"hubcloud/test/harness"
	"hubcloud/test/natscluster"
)

func TestMain(m *testing.M) {
	if natscluster.Requested() {
		if err := natscluster.RunServer(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	code := m.Run()
	harness.RemoveBinary()
	os.Exit(code)
}
