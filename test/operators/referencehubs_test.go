package operators

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
	"hubcloud/test/nodejs"
)

// TestReferenceHubs: the examples of the hub libraries in Go and Node, the hub in Python and the
// gateway for Z-Wave pass `hubcloud hub check`, except for the step that fills their queue of
// events, which takes long.
func TestReferenceHubs(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	harness.Must(t, err)
	t.Run("go", func(t *testing.T) {
		t.Parallel()
		example := filepath.Join(t.TempDir(), "example")
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		build := exec.CommandContext(ctx, "go", "build", "-o", example, "./hubbridge/kit/hub/example")
		build.Dir = root
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("go build: %v\n%s", err, out)
		}
		passesCheck(t, example)
	})
	t.Run("python", func(t *testing.T) {
		t.Parallel()
		passesCheck(t, pythonWithMQTT(t), filepath.Join(root, "hubbridge/kit/hub/python/hub.py"))
	})
	t.Run("node", func(t *testing.T) {
		t.Parallel()
		dir, _ := nodejs.Radios(t)
		t.Run("library", func(t *testing.T) {
			t.Parallel()
			passesCheck(t, "node", filepath.Join(dir, "kit/node/example/hub.mjs"))
		})
		t.Run("zwave", func(t *testing.T) {
			t.Parallel()
			passesCheck(t, "node", filepath.Join(dir, "gateway/zwave/dist/zwave/src/main.js"), "--mock")
		})
		t.Run("zigbee2mqtt", func(t *testing.T) {
			t.Parallel()
			passesCheck(t, "node", filepath.Join(dir, "gateway/zigbee2mqtt/test/helpers/checked.mjs"))
		})
	})
}

// pythonWithMQTT returns a Python that has paho-mqtt. Without one it skips the test.
func pythonWithMQTT(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("the openssl command is missing")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		if exec.CommandContext(ctx, python, "-c", "import paho.mqtt.client").Run() == nil {
			return python
		}
	}
	t.Skip("paho-mqtt is missing (Debian: apt-get install python3-paho-mqtt)")
	return ""
}

// passesCheck runs a check with the hub that the command line starts, and wants it to pass.
func passesCheck(t *testing.T, command ...string) {
	t.Helper()
	const serial = "HUB-7K2M-Q4XD-93TA"
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails
	secret := base64.RawURLEncoding.EncodeToString(random[:])
	_, port, err := net.SplitHostPort(streamstest.FreeAddress(t))
	harness.Must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 12*time.Minute)
	defer cancel()
	hub := exec.CommandContext(ctx, command[0], append(
		command[1:], "--enroll", "http://127.0.0.1:"+port, "--serial", serial, "--secret="+secret,
		"--dir", filepath.Join(t.TempDir(), "hub"),
	)...)
	var output bytes.Buffer
	hub.Stdout, hub.Stderr = &output, &output
	harness.Must(t, hub.Start())
	check := exec.CommandContext(
		ctx, harness.Binary(t), "hub", "check", "--listen", "127.0.0.1", "--http-port", port,
		"--serial", serial, "--secret="+secret, "--commands", "0",
	)
	result, checkErr := check.CombinedOutput()
	if err := hub.Process.Signal(os.Interrupt); err != nil {
		t.Errorf("the hub has ended before it was stopped: %v", err)
	}
	_ = hub.Wait() // its exit code depends on the signal
	if checkErr != nil {
		lines := strings.Split(string(result), "\n")
		t.Errorf(
			"hub check: %v\n%s\nthe hub printed:\n%s", checkErr,
			strings.Join(lines[max(0, len(lines)-80):], "\n"), output.String(),
		)
	}
}
