package operators

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// TestRotation replaces the certificate authority with the runbook's commands. A hub that received
// the new authority in time stays connected, a hub that enrols later knows both, and a hub that was
// offline enrols again when it is rejected.
func TestRotation(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("NOT TRIED: the runbook needs openssl")
	}
	c := harness.NewTarget(t)
	s, tenant := c.OwnService(), c.Tenant("Rotation")
	lock := virtualhub.Config{Devices: []virtualhub.DeviceSpec{{Kind: "lock"}}}
	// This hub enrols before the rotation and is offline while hubs receive the new authority.
	late := c.VirtualHub(tenant, lock)
	late.Offline(true)

	dir := t.TempDir()
	former := filepath.Join(dir, "former.pem")
	next := filepath.Join(dir, "next.pem")
	key := filepath.Join(dir, "next-key.pem")
	out, err := exec.Command(
		"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
		"-days", "10950",
		"-subj", "/CN=hubcloud authority 2", "-addext",
		"basicConstraints=critical,CA:TRUE,pathlen:0",
		"-addext", "keyUsage=critical,keyCertSign,cRLSign", "-keyout", key, "-out", next).
		CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	restart := func(args ...string) {
		t.Helper()
		s.Stop()
		s.Args = args
		s.Begin()
	}
	online := func(hub *virtualhub.Hub) {
		t.Helper()
		streamstest.Eventually(t, "the hub "+hub.ID()+" is back", func() bool {
			answer, err := tenant.Do(http.MethodGet, "/hubs/"+hub.ID()+"/devices", nil)
			return err == nil && answer.Status == http.StatusOK
		})
	}
	enrolled := func(want string) {
		t.Helper()
		answer := harness.Open(t, http.MethodGet, "http://"+s.Admin+"/metrics")
		if !strings.Contains(
			string(answer.Body), `hubcloud_identity_enrolments_total{result="issued"} `+want+"\n",
		) {
			t.Errorf("want %s enrolments since the start", want)
		}
	}

	// Enrolling hubs get both authorities.
	restart("--ca-also", next)
	reported := c.VirtualHub(tenant, lock)

	// The new authority signs.
	content, err := os.ReadFile(filepath.Join(s.Dir, "ca", "ca.pem"))
	if err == nil {
		err = os.WriteFile(former, content, 0o600)
	}
	harness.Must(t, err)
	restart("--ca-cert", next, "--ca-key", key, "--ca-also", former)
	online(reported)
	enrolled("0")
	new := c.VirtualHub(tenant, lock)
	late.Offline(false)
	late.Restart() // a running hub does this within six hours
	online(late)
	enrolled("2")

	// The former authority is removed.
	restart("--ca-cert", next, "--ca-key", key)
	online(new)
	online(late)
	enrolled("0")
	reported.Restart()
	online(reported)
	enrolled("1")
}
