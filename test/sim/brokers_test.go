package sim

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/streams"
)

// The servers go on without the leader of a stream, and agree when it is back.
func TestBrokers(t *testing.T) {
	const client = "10.0.1.1"
	everybody := append([]string{client}, brokerHosts...)
	for seed, fault := range []struct {
		name      string
		lose      func(b *Brokers, n *Network, leader string)
		heal      func(b *Brokers, n *Network, leader string)
		mustElect bool
	}{
		{
			"crash",
			func(b *Brokers, _ *Network, leader string) { b.Kill(leader, false) },
			func(b *Brokers, _ *Network, leader string) { b.Start(leader) }, true,
		},
		{
			"cut both ways",
			func(_ *Brokers, n *Network, leader string) {
				for _, host := range everybody {
					n.Cut(leader, host)
					n.Cut(host, leader)
				}
			},
			func(_ *Brokers, n *Network, _ string) { n.Heal() }, true,
		},
		{
			"cut from the leader",
			func(_ *Brokers, n *Network, leader string) {
				for _, host := range everybody {
					n.Cut(leader, host)
				}
			},
			func(_ *Brokers, n *Network, _ string) { n.Heal() }, true,
		},
		{
			"reset",
			func(_ *Brokers, n *Network, leader string) {
				for _, host := range everybody {
					n.Reset(leader, host)
				}
			},
			func(*Brokers, *Network, string) {}, false,
		},
	} {
		t.Run(fault.name, func(t *testing.T) {
			bubble(t, int64(seed), func(t *testing.T, trace *Trace) {
				network := NewNetwork(int64(seed))
				b := NewBrokers(t, network, trace, 2)
				for _, host := range brokerHosts {
					b.Start(host)
				}
				defer b.Stop()
				time.Sleep(10 * time.Second) // virtual, for the first elections
				conns, err := streams.Connect(
					t.Context(), b.Credentials, nats.SetCustomDialer(network.Dialer(client)),
				)
				if err != nil {
					t.Error(err)
					return
				}
				defer conns.Close()
				stream := &logStream{t: t, nc: conns.Cloud}
				stream.create()
				leader := stream.info().Cluster.Leader
				fault.lose(b, network, leader)
				stream.append(20)
				if now := stream.info().Cluster.Leader; fault.mustElect && now == leader {
					t.Errorf("%s leads without a majority", leader)
				}
				fault.heal(b, network, leader)
				stream.append(20)
				time.Sleep(30 * time.Second) // virtual, in which all replicas must catch up
				for _, r := range stream.info().Cluster.Replicas {
					if r.Offline || r.Lag != 0 {
						t.Errorf("30 s after the fault: replica %+v", r)
					}
				}
				stream.check()
			})
		})
	}
}

// logStream is a stream to which numbers are appended once each.
type logStream struct {
	t     *testing.T
	nc    *nats.Conn
	js    jetstream.JetStream
	acked uint64
}

func (s *logStream) create() {
	s.t.Helper()
	s.js, _ = jetstream.New(s.nc)
	if _, err := s.js.CreateStream(s.t.Context(), jetstream.StreamConfig{
		Name: "X", Subjects: []string{"x"}, Replicas: len(brokerHosts),
	}); err != nil {
		s.t.Fatal(err)
	}
}

// append appends n messages, each repeated until it is acknowledged.
func (s *logStream) append(n int) {
	s.t.Helper()
	for range n {
		for begun := time.Now(); ; {
			ctx, cancel := context.WithTimeout(s.t.Context(), time.Second)
			_, err := s.js.Publish(
				ctx, "x", nil, jetstream.WithExpectLastSequence(s.acked),
			)
			cancel()
			var api *jetstream.APIError
			if err == nil || errors.As(err, &api) &&
				api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence {
				break // stored by this attempt, or by one whose answer was lost
			}
			if time.Since(begun) > time.Minute {
				s.t.Fatalf("append: %v", err)
			}
		}
		s.acked++
	}
}

func (s *logStream) info() *jetstream.StreamInfo {
	s.t.Helper()
	for begun := time.Now(); ; time.Sleep(time.Second) { // virtual time
		stream, err := s.js.Stream(s.t.Context(), "X")
		if err == nil && stream.CachedInfo().Cluster.Leader != "" {
			return stream.CachedInfo()
		}
		if time.Since(begun) > time.Minute {
			s.t.Fatalf("info: %v", err)
		}
	}
}

func (s *logStream) check() {
	s.t.Helper()
	if got := s.info().State.LastSeq; got != s.acked {
		s.t.Errorf("the stream ends at %d, want %d", got, s.acked)
	}
}
