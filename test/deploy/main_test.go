package deploy

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

// read returns a file of the folder deploy/.
func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile("../../deploy/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
