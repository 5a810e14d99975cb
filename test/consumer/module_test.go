package consumer

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
)

// TestModuleThatDependsOnTheClient builds a program of another module with the Go client, as the
// client's documentation describes, without a module proxy: nothing is downloaded.
func TestModuleThatDependsOnTheClient(t *testing.T) {
	t.Parallel()
	checkout, err := filepath.Abs("../..")
	streamstest.Must(t, err)
	dir := t.TempDir()
	program := `package main

import "hubcloud/httpapi/client"

func main() {
	if _, err := client.New(client.Config{}); err == nil {
		panic("a client without an address")
	}
}
`
	streamstest.Must(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	for _, args := range [][]string{
		{"mod", "init", "example.com/program"},
		{"mod", "edit", "-require", "hubcloud@v0.0.0", "-replace", "hubcloud=" + checkout},
		{"run", "."},
	} {
		command := exec.CommandContext(ctx, "go", args...)
		command.Dir = dir
		command.Env = append(os.Environ(), "GOWORK=off", "GOPROXY=off", "GOFLAGS=")
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("go %v: %v\n%s", args, err, out)
		}
	}
}
