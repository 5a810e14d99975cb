package deploy

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

// read returns a file of the folder deploy/.
func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile("../../deploy/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
