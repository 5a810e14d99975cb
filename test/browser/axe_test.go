package browser

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// axeVersion is the version of axe-core that checks the pages. It is downloaded, since its licence
// is the MPL 2.0.
const axeVersion = "4.14.1"

// loadAxe returns the source of axe-core, which it installs from npm if it is missing.
var loadAxe = sync.OnceValues(func() (string, error) {
	folder, err := filepath.Abs(filepath.Join(artifacts, "axe"))
	if err != nil {
		return "", err
	}
	path := filepath.Join(folder, "node_modules", "axe-core", "axe.min.js")
	if _, err := os.Stat(path); err != nil {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return "", err
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		install := exec.CommandContext(
			ctx, "npm", "install", "--no-save", "--silent", "--prefix", folder,
			"axe-core@"+axeVersion,
		)
		if err := install.Run(); err != nil {
			return "", err
		}
	}
	text, err := os.ReadFile(path)
	return string(text), err
})

// axe returns the source of axe-core, or "" if it is not available.
func axe(t *testing.T) string {
	t.Helper()
	text, err := loadAxe()
	if err != nil {
		t.Logf("NOT TRIED: axe-core %s is not available: %v", axeVersion, err)
	}
	return text
}

// prefer emulates a user's preference for a color scheme, light or dark.
func prefer(scheme string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return err
	})
}
