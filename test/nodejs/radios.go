package nodejs

import (
	"os"
	"path/filepath"
	"testing"
)

// Radios compiles the hub library for Node and the gateways on it, and returns the folder that has
// each of them, by the name of its folder, with everything installed that it needs.
func Radios(t testing.TB) string {
	t.Helper()
	tools := Install(t, filepath.Join("..", "radios"), "radios")
	dir, err := os.MkdirTemp(tools, "run-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must(t, os.MkdirAll(filepath.Join(dir, "node_modules", "@hubcloud"), 0o755))
	must(t, os.Symlink(
		filepath.Join("..", "..", "node"), filepath.Join(dir, "node_modules", "@hubcloud", "hub"),
	))
	for _, source := range []string{"kit/node", "gateway/zwave", "gateway/zigbee2mqtt"} {
		target := filepath.Join(dir, filepath.Base(source))
		for _, part := range []string{"src", "test", "example"} {
			from := filepath.Join("..", "..", "hubbridge", source, part)
			if _, err := os.Stat(from); err == nil {
				must(t, os.CopyFS(filepath.Join(target, part), os.DirFS(from)))
			}
		}
		for _, name := range []string{"package.json", "tsconfig.json"} {
			text, err := os.ReadFile(filepath.Join("..", "..", "hubbridge", source, name))
			must(t, err)
			must(t, os.WriteFile(filepath.Join(target, name), text, 0o600))
		}
		Run(t, Program(t, tools, target, "tsc", "-p", "."))
	}
	return dir
}
