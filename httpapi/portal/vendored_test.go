package portal

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"hubcloud/streams/streamstest"
)

// The chart library is uPlot 1.6.32, as its authors published it, with its licence.
func TestVendoredFiles(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
		"uPlot.min.css":     "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
		"uPlot.LICENSE.txt": "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
	} {
		content, err := assetFiles.ReadFile("assets/" + name)
		streamstest.Must(t, err)
		sum := sha256.Sum256(content)
		if got := hex.EncodeToString(sum[:]); got != want {
			t.Errorf("%s: got sum %s, want %s", name, got, want)
		}
	}
}
