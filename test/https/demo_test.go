package https

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

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
	if err != nil {
		t.Fatal(err)
	}
	if err := demo.Start(); err != nil {
		t.Fatal(err)
	}
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
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "demo"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, // as of openssl req -x509
	}
	signed, err := x509.CreateCertificate(
		rand.Reader, template, template, private.Public(), private,
	)
	if err != nil {
		t.Fatal(err)
	}
	bytes, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, bytes []byte) string {
		path := filepath.Join(t.TempDir(), name)
		text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes})
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("cert.pem", "CERTIFICATE", signed), write("key.pem", "PRIVATE KEY", bytes)
}
