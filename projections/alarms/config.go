package alarms

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/domain"
	"hubcloud/domain/attention"
	"hubcloud/projections/readmodel"
	"hubcloud/streams/outbox"
	"hubcloud/streams/shares"
)

// Config configures a Notifier. Fields without a default are required.
type Config struct {
	// Database is the configuration of connections to the database of the read models. The lock is
	// held there.
	Database *pgx.ConnConfig `check:"set"`
	// Hubs reads what hubs reported last.
	Hubs Hubs `check:"set"`
	// SilentHubs returns the hubs that are connected but report no events, and since when. After an
	// error it returns those that are known.
	SilentHubs func(ctx context.Context) (map[domain.HubID]time.Time, error) `check:"set"`
	// Org returns an organization with every event that was acknowledged before the call.
	Org func(ctx context.Context, org string) (domain.OrgState, error) `check:"set"`
	// Records stores what was mailed.
	Records *outbox.AlarmRecords `check:"set"`
	// Send queues a mail to a member of the organization with an id, and returns once the mail is
	// stored. Two mails with one id are one.
	Send  func(ctx context.Context, org domain.OrgState, mail attention.Mail) error `check:"set"`
	Rules attention.MailRules                                                       `check:"valid"`
	// Interval is the least time between two turns of an organization, unless a device of it reports
	// an alarm. Defaults to 2 s.
	Interval time.Duration `check:"at least 0"`
	// Shares reports the turns of organizations; nil reports nothing.
	Shares *shares.Registry
	// Now is the clock. Defaults to time.Now.
	Now func() time.Time
	// Logger defaults to slog.Default().
	Logger *slog.Logger
	// Metrics registers the metrics; nil means none.
	Metrics prometheus.Registerer
}

// Hubs reads what hubs reported last.
type Hubs interface {
	// ObserveOrg returns the hubs of an organization that are offline or have a device that may need
	// attention, and the organization's hubs of watched, with their devices in it.
	ObserveOrg(
		ctx context.Context, org string, watched map[domain.HubID][]int64,
	) ([]readmodel.ObservedHub, error)
	// OrgsNeedingAttention returns the organizations that have such a hub.
	OrgsNeedingAttention(ctx context.Context) ([]string, error)
	// OrgsOf returns the organizations of hubs.
	OrgsOf(ctx context.Context, hubs []domain.HubID) (map[domain.HubID]string, error)
}

// WithDefaults returns a copy with defaults in place of zero values.
func (c Config) WithDefaults() Config {
	c.Interval = cmp.Or(c.Interval, 2*time.Second)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}
