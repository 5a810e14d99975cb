package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"hubcloud/cmd/hubcloud/internal/doctor/survey"
	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/directory"
)

// readTimeout bounds the reading of the directory: that of a large installation is not read to its
// end.
const readTimeout = 3 * time.Second

// checkHubCertificates reads the directory for the certificates that hubs may connect with now, and
// counts those that end soon.
func checkHubCertificates(ctx context.Context, p *patient, f *findings) {
	cloud, err := p.cloud()
	if err != nil {
		if p.CredentialsErr == nil {
			f.untold("those of the hubs cannot be told: ", err)
		}
		return
	}
	if !slices.ContainsFunc(
		cloud, func(s survey.Stream) bool { return s.Name == streams.DirectoryStream },
	) {
		return // the component logs tells that
	}
	ends, read, head, err := hubCertificates(ctx, p)
	if err != nil {
		f.untold("those of the hubs cannot be told: ", err)
		return
	}
	if read < head {
		f.note("there was time for %d of the directory's %d events", read, head)
	}
	judgeHubCertificates(p, ends, f)
}

// hubCertificates gives when the hubs' current certificates end, as far as there was time to read.
func hubCertificates(
	ctx context.Context, p *patient,
) (ends map[domain.HubID]time.Time, read, head uint64, err error) {
	conns, err := p.broker()
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
	// there is no more time for this
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = nil
	}
	return ends, read, head, err
}

func judgeHubCertificates(p *patient, ends map[domain.HubID]time.Time, f *findings) {
	now := time.Now()
	var ended, soon []string
	for hub, end := range ends {
		switch left := end.Sub(now); {
		case left <= 0:
			ended = append(ended, string(hub))
		case left < p.soon():
			soon = append(soon, string(hub))
		}
	}
	slices.Sort(ended)
	slices.Sort(soon)
	f.note("%d hubs have a certificate", len(ends))
	const advice = "a hub renews its certificate a month before the end: one that has not is " +
		"away, or does not reach /link/v1/certificates. " +
		"One that comes back too late gets another by its enrolment secret"
	if len(soon) > 0 {
		f.add(
			Warning,
			fmt.Sprintf(
				"those of %d hubs end within %d days: %s", len(soon), p.Limits.CertificateDays,
				several(soon),
			),
			advice,
		)
	}
	if len(ended) > 0 {
		f.add(
			Warning, fmt.Sprintf("those of %d hubs have ended: %s", len(ended), several(ended)),
			advice,
		)
	}
}
