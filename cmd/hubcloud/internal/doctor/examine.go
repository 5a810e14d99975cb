package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"hubcloud/cmd/hubcloud/internal/datadir"
	"hubcloud/projections"
	"hubcloud/streams"
)

const (
	// reachTimeout bounds the way to something that several checks need; questionTimeout what a
	// check does with it; patience all of it. A check that has not come back by then, such as one
	// of a disk that hangs, is left to itself.
	reachTimeout    = 2 * time.Second
	questionTimeout = 4 * time.Second
	patience        = 4500 * time.Millisecond
)

// Config says where the parts of an installation are, as far as that is known.
type Config struct {
	// DataDir is the data directory of a service on this machine, "" when there is none.
	DataDir string
	// Elsewhere says that the broker was named by its address, so that nothing on this machine
	// needs to run.
	Elsewhere bool
	// Bound is what the running service bound, the zero value when none runs.
	Bound Bound
	// Started is what the service left behind about how it was started; nil when there is nothing,
	// or StartedErr says why it cannot be read.
	Started    *datadir.Started
	StartedErr error
	// Credentials say how to reach the broker, unless CredentialsErr says why that is not known.
	Credentials    streams.Credentials
	CredentialsErr error
	// PostgresURL is how to reach the database, "" when that is not known; PostgresErr may say why.
	PostgresURL string
	PostgresErr error
	// Projections asks how far the read models are; it is asked only where there is an
	// installation. Required.
	Projections func(ctx context.Context, conns *streams.Conns) ([]projections.Status, error)
	// SMTPURL is the mail server with its login, "" for what Started knows of it.
	SMTPURL string
	// CACert is the authority's certificate (PEM), "" for that of Started or of the data directory.
	CACert string
	// Certificates are further files (PEM) whose end is looked at.
	Certificates []string
	Limits       Limits
}

// Bound is where a running service listens, as its endpoints.json says.
type Bound struct {
	HTTP, Admin, MQTT, PublicURL string
}

// Limits are from where on something is wrong, or is worth a warning. The command line has their
// defaults.
type Limits struct {
	// DiskFree is how much of a disk must be free, in percent; below twice as much is a warning.
	DiskFree float64
	// SyncTime is how long a sync of the disk may take before it is a warning.
	SyncTime time.Duration
	// OpenFiles is how many open files must be allowed at least, beside what the hubs need.
	OpenFiles uint64
	// ClockSkew is how far two clocks may be apart.
	ClockSkew time.Duration
	// CertificateDays is how many days a certificate must last at least.
	CertificateDays int
	// Storage is how much of what the broker may store, in percent, may be used; four fifths of it
	// is a warning.
	Storage float64
	// Connections is how many connections the database must have left.
	Connections int
	// Lag is how long ago an event may have been stored that the read models do not have yet.
	Lag time.Duration
	// MailAge is how long a mail may wait.
	MailAge time.Duration
	// Flaps is how many times an hour a hub may be disconnected before it is a warning.
	Flaps int
	// HubFacts is how many times an hour a hub may be reset, or be issued a certificate, before it
	// is a warning.
	HubFacts int
}

// check looks at one component.
type check struct {
	name string
	look func(ctx context.Context, p *patient, f *findings)
}

// checks are all there are, in the order in which they are told.
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
}

// Check checks every component. It takes less than five seconds, whatever hangs.
func Check(ctx context.Context, cfg Config) []Component { return examine(ctx, cfg, checks[:]) }

func examine(ctx context.Context, cfg Config, checks []check) []Component {
	ctx, cancel := context.WithTimeout(ctx, questionTimeout)
	p := newPatient(ctx, cfg)
	results := make([]chan Component, len(checks))
	for i, c := range checks {
		result := make(chan Component, 1) // nobody may be there any more to take it
		results[i] = result
		go func() {
			f := newFindings()
			c.look(ctx, p, f)
			result <- f.component(c.name)
		}()
	}
	late := time.NewTimer(patience)
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
				Unknown, fmt.Sprintf("no answer within %s", patience),
				"look whether a disk or a mount of this machine hangs (dmesg, `df`), and ask again",
			)
			all[i] = f.component(c.name)
		}
	}
	cancel()
	p.close()
	return all
}

func (f *findings) component(name string) Component {
	return Component{
		Name: name, OK: severity[f.verdict] <= severity[Warning], Verdict: f.verdict,
		Detail: strings.Join(f.details, "; "), Advice: f.advice,
	}
}

// Healthy says that nothing is wrong and everything that should be known is.
func Healthy(all []Component) bool {
	for _, c := range all {
		if !c.OK {
			return false
		}
	}
	return true
}
