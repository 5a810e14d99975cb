package https

import (
	"bufio"
	"crypto/x509"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// TestDemo runs `hubcloud dev` with a certificate that signs itself. Regression: the virtual hubs
// did not trust it, and the commands to try were never printed.
func TestDemo(t *testing.T) {
	t.Parallel()
	certificate, key := selfSigned(t)
	address := streamstest.FreeAddress(t)
	demo := exec.Command(
		harness.Binary(t), "dev", "--data-dir", t.TempDir(), "--http", address,
		"--tls-cert", certificate, "--tls-key", key, "--public-url", "https://"+address,
		"--mqtt", "127.0.0.1:0", "--nats", "127.0.0.1:0", "--admin", "127.0.0.1:0",
	)
	demo.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	demo.Stderr = t.Output()
	out, err := demo.StdoutPipe()
	harness.Must(t, err)
	harness.Must(t, demo.Start())
	t.Cleanup(func() {
		_ = demo.Process.Signal(syscall.SIGTERM)
		if err := demo.Wait(); err != nil {
			t.Errorf("dev ended with %v", err)
		}
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if text := strings.TrimSpace(lines.Text()); strings.HasPrefix(text, "curl --cacert ") &&
			strings.HasSuffix(text, "/v1/hubs") {
			answer, err := exec.Command("sh", "-c", text).CombinedOutput()
			if online := strings.Count(string(answer), `"online"`); err != nil || online != 3 {
				t.Errorf("%s: %v, %d hubs online\n%s", text, err, online, answer)
			}
			return
		}
	}
	t.Errorf("no command was printed: %v", lines.Err())
}

// selfSigned writes a certificate for 127.0.0.1 that signs itself, and returns the files of it and of
// its key.
func selfSigned(t *testing.T) (certificate, key string) {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	own := server.TLS.Certificates[0]
	private, err := x509.MarshalPKCS8PrivateKey(own.PrivateKey)
	harness.Must(t, err)
	write := func(name, kind string, bytes []byte) string {
		path := filepath.Join(t.TempDir(), name)
		text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes})
		harness.Must(t, os.WriteFile(path, text, 0o600))
		return path
	}
	certificate = write("cert.pem", "CERTIFICATE", own.Certificate[0])
	return certificate, write("key.pem", "PRIVATE KEY", private)
}
