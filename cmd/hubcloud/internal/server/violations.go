package server

import (
	"context"

	"hubcloud/domain"
	"hubcloud/hubbridge/ingest"
	"hubcloud/streams/broker"
)

// reportViolations passes on what hubs do that the embedded broker does not allow, until ctx ends.
func (s *hubLink) reportViolations(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case v := <-s.broker.Violations():
			hub, ok := domain.ParseHubID(v.ClientID)
			if !ok {
				continue // a tap's
			}
			switch v.Kind {
			case broker.ViolationQoS2:
				s.bridge.ReportFault(hub, ingest.FaultQoS2, "published with QoS 2")
			case broker.ViolationSubscribe:
				s.bridge.ReportFault(hub, ingest.FaultForeignTopic, "subscribed to "+v.Topic)
			default:
				s.bridge.ReportFault(hub, ingest.FaultForeignTopic, "published to "+v.Topic)
			}
		}
	}
}
