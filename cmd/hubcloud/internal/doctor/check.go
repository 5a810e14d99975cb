package doctor

import (
	"context"
	"fmt"
	"time"

	"hubcloud/cmd/hubcloud/internal/datadir"
	"hubcloud/projections"
	"hubcloud/streams"
)

const (
	// connectTimeout bounds the connection to a server.
	connectTimeout = 2 * time.Second
	// checkTimeout ends the context of the checks.
	checkTimeout = 4 * time.Second
	// giveUpTimeout is when runChecks stops waiting for checks that ignore their context, such as a
	// check of a disk that hangs.
	giveUpTimeout = 4500 * time.Millisecond
)

// Config has what is known about an installation. Zero fields are unknown. It has neither defaults,
// which the command line sets, nor a Validate: the check that a field concerns reports it.
type Config struct {
	// DataDir is the data directory of a service on this machine; "" for none.
	DataDir string
	// Elsewhere is set when the broker was named by its address. Then no service needs to run on
	// this machine.
	Elsewhere bool
	// Bound has the addresses of the running service; zero when none runs.
	Bound Bound
	// Started describes how the service was started. It is nil when the file does not exist, or
	// when StartedErr is set.
	Started    *datadir.Started
	StartedErr error
	// Credentials are the broker's, unless CredentialsErr is set.
	Credentials    streams.Credentials
	CredentialsErr error
	// PostgresURL is the database's URL. When it is "", PostgresErr may have the reason.
	PostgresURL string
	PostgresErr error
	// Projections returns the status of the projections. The doctor calls it only when the broker
	// has an installation. Required.
	Projections func(ctx context.Context, conns *streams.Conns) ([]projections.Status, error)
	// SMTPURL is the mail server's URL with its login. Defaults to that of Started, without a
	// login.
	SMTPURL string
	// CACert is the path of the authority's certificate (PEM). Defaults to that of Started or of
	// the data directory.
	CACert string
	// Certificates are paths of further certificates (PEM) whose expiry is checked.
	Certificates []string
	Limits       Limits
}

// Bound has the addresses of a running service, from endpoints.json.
type Bound struct {
	HTTP, Admin, MQTT, PublicURL string
	// TLS reports whether HTTP speaks HTTPS.
	TLS bool
}

// Limits are the values beyond which a component is wrong or gets a warning. The command line has
// the defaults.
type Limits struct {
	// DiskFree is the part of a disk that must be free, in percent. Less than twice as much is a
	// warning.
	DiskFree float64
	// SyncTime is the longest time for a sync of the disk without a warning.
	SyncTime time.Duration
	// OpenFiles is the lowest limit of open files; the hubs may need more.
	OpenFiles uint64
	// ClockSkew is the largest difference between two clocks.
	ClockSkew time.Duration
	// CertificateDays is for how many days a certificate must still be valid.
	CertificateDays int
	// Storage is the largest used part of a storage limit, in percent. More than four fifths of it
	// is a warning.
	Storage float64
	// Connections is how many connections the database must have free.
	Connections int
	// Lag is the largest age of an event that the read models have not applied.
	Lag time.Duration
	// MailAge is the longest time that a mail waits.
	MailAge time.Duration
	// Flaps is the number of disconnections of a hub per hour that is a warning.
	Flaps int
	// HubFacts is the number of resets of a hub per hour, or of certificates issued to it, that is
	// a warning.
	HubFacts int
}

// check is the check of one component. run adds what it finds to f and must return when ctx ends.
type check struct {
	name string
	run  func(ctx context.Context, t *target, f *findings)
}

// checks are all checks, in the order of the results. A new check is also named in the help of the
// command (cli/doctor.go), in deploy/docs/doctor.md and in test/operators/diagnosis_test.go.
var checks = [...]check{
	{"service", checkService},
	{"broker", checkBroker},
	{"disk", checkDisk},
	{"sync", checkSync},
	{"open_files", checkOpenFiles},
	{"clock", checkClock},
	{"certificates", checkCertificates},
	{"postgres", checkPostgres},
	{"projections", checkProjections},
	{"mail", checkMail},
	{"hubs", checkHubs},
	{"logs", checkLogs},
	{"journal", checkJournal},
}

// Check checks every component, in less than five seconds.
func Check(ctx context.Context, cfg Config) []Component { return runChecks(ctx, cfg, checks[:]) }

// runChecks runs checks and returns their components in the same order.
func runChecks(ctx context.Context, cfg Config, checks []check) []Component {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	t := newTarget(ctx, cfg)
	results := make([]chan Component, len(checks))
	for i, c := range checks {
		result := make(chan Component, 1) // buffered: the receiver may have given up
		results[i] = result
		go func() {
			f := newFindings()
			c.run(ctx, t, f)
			result <- f.component(c.name)
		}()
	}
	late := time.NewTimer(giveUpTimeout)
	defer late.Stop()
	all := make([]Component, len(checks))
	expired := false
	for i, c := range checks {
		if !expired {
			select {
			case all[i] = <-results[i]:
				continue
			case <-late.C:
				expired = true
			}
		}
		select {
		case all[i] = <-results[i]:
		default:
			f := newFindings()
			f.add(
				Unknown, fmt.Sprintf("no answer within %s", giveUpTimeout),
				"check whether a disk or a mount of this machine hangs (dmesg, `df`), and try "+
					"again",
			)
			all[i] = f.component(c.name)
		}
	}
	cancel()
	t.close()
	return all
}

// Healthy reports whether no component is wrong or unknown.
func Healthy(all []Component) bool {
	for _, c := range all {
		if !c.OK {
			return false
		}
	}
	return true
}
