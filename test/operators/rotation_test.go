package operators

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hubcloud/hubbridge/virtualhub"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// TestRotation replaces the certificate authority as the runbook says, with its own commands: a hub
// that was told of the new one in time stays, one that comes later knows only both, and one that
// was not told enrols again when it is refused.
func TestRotation(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip(
			"NOT TRIED: the runbook makes the new authority with openssl, and there is none here",
		)
	}
	c := harness.NewTarget(t)
	s, tenant := c.OwnService(), c.Tenant("Rotation")
	lock := virtualhub.Config{Devices: []virtualhub.DeviceSpec{{Kind: "lock"}}}
	// enrolled before anything began, and away while hubs are told
	late := c.VirtualHub(tenant, lock)
	late.Offline(true)

	dir := t.TempDir()
	former, next, key := filepath.Join(dir, "former.pem"), filepath.Join(dir, "next.pem"), filepath.Join(dir, "next-key.pem")
	out, err := exec.Command("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "10950",
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
			t.Errorf("not %s hubs have enrolled since the start", want)
		}
	}

	// Hubs that enrol are told of both.
	restart("--ca-also", next)
	told := c.VirtualHub(tenant, lock)

	// The new one signs.
	content, err := os.ReadFile(filepath.Join(s.Dir, "ca", "ca.pem"))
	if err == nil {
		err = os.WriteFile(former, content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	restart("--ca-cert", next, "--ca-key", key, "--ca-also", former)
	online(told)
	enrolled("0")
	new := c.VirtualHub(tenant, lock)
	late.Offline(false)
	late.Restart() // or six hours later
	online(late)
	enrolled("2")

	// The former one is forgotten.
	restart("--ca-cert", next, "--ca-key", key)
	online(new)
	online(late)
	enrolled("0")
	told.Restart()
	online(told)
	enrolled("1")
}
