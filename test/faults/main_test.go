package faults

import (
	"fmt"
	"os"
	"testing"

	"hubcloud/test/harness"
)

func TestMain(m *testing.M) {
	if os.Getenv(natsServerVariable) != "" {
		if err := natsServer(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	code := m.Run()
	harness.RemoveBinary()
	os.Exit(code)
}
