package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/directory"
)

// readTimeout bounds the read of the directory. A large directory is read only in part.
const readTimeout = 3 * time.Second

// checkHubCertificates reads the current certificates of the hubs from the directory, and counts
// those that expire soon.
func checkHubCertificates(ctx context.Context, t *target, f *findings) {
	cloud, err := t.cloud()
	if err != nil {
		if t.CredentialsErr == nil {
			f.unknown("those of the hubs are unknown: ", err)
		}
		return
	}
	if !hasDirectory(cloud) {
		return // the component logs reports that
	}
	ends, read, head, err := hubCertificates(ctx, t)
	if err != nil {
		f.unknown("those of the hubs are unknown: ", err)
		return
	}
	if read < head {
		f.note("only %d of the directory's %d events were read in time", read, head)
	}
	judgeHubCertificates(t, ends, f)
}

// hubCertificates returns the expiry of each hub's current certificate. read is how many events of
// the directory it could read in time, head how many there are.
func hubCertificates(
	ctx context.Context, t *target,
) (ends map[domain.HubID]time.Time, read, head uint64, err error) {
	conns, err := t.broker()
	if err != nil {
		return nil, 0, 0, err
	}
	log, err := directory.Open(ctx, conns, 0)
	if err != nil {
		return nil, 0, 0, err
	}
	if head, err = log.Head(ctx, 0); err != nil {
		return nil, 0, 0, err
	}
	ends = map[domain.HubID]time.Time{}
	reading, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	err = log.Replay(reading, 0, head, func(batch []directory.Recorded) error {
		for _, r := range batch {
			switch fact := r.Fact.(type) {
			case domain.HubCertificateIssued:
				ends[fact.HubID] = fact.ExpiresAt
			case domain.HubCertificateRevoked:
				delete(ends, fact.HubID)
			}
			read = r.Seq
		}
		return nil
	})
	// A partial result is good enough.
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = nil
	}
	return ends, read, head, err
}

// judgeHubCertificates reports hubs whose certificates have expired or expire soon.
func judgeHubCertificates(t *target, ends map[domain.HubID]time.Time, f *findings) {
	now := time.Now()
	var ended, soon []string
	for hub, end := range ends {
		switch left := end.Sub(now); {
		case left <= 0:
			ended = append(ended, string(hub))
		case left < t.soon():
			soon = append(soon, string(hub))
		}
	}
	slices.Sort(ended)
	slices.Sort(soon)
	f.note("%d hubs have a certificate", len(ends))
	const advice = "a hub renews its certificate in its last month: this hub is offline or " +
		"cannot reach /link/v1/certificates. After the expiry it enrols again with its secret"
	if len(soon) > 0 {
		f.add(
			Warning,
			fmt.Sprintf(
				"those of %d hubs expire within %d days: %s", len(soon), t.Limits.CertificateDays,
				several(soon),
			),
			advice,
		)
	}
	if len(ended) > 0 {
		f.add(
			Warning, fmt.Sprintf("those of %d hubs have expired: %s", len(ended), several(ended)),
			advice,
		)
	}
}
