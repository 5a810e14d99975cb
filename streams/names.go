package streams

import (
	"fmt"

	"hubcloud/domain"
)

// Account is the name of an account of the broker.
type Account string

// The accounts beside the shards and AccountTap.
const (
	AccountSys   Account = "SYS"
	AccountCloud Account = "CLOUD"
)

// MaxShards is the most shards that an installation may have.
const MaxShards = 256

// ShardAccount names the account of a shard, counted from 0.
func ShardAccount(i int) Account { return Account(fmt.Sprintf("SHARD%02d", i)) }

// ShardOf returns the shard of a hub: FNV-1a, 32 bits, of its id, modulo the number of shards,
// which must be above 0. It must never change: the streams of hub logs are placed by it.
func ShardOf(hub domain.HubID, shards int) int {
	h := uint32(2166136261)
	for i := range len(hub) {
		h = (h ^ uint32(hub[i])) * 16777619
	}
	return int(h % uint32(shards))
}

// A hub's log, in the account of its shard.

// HubStream names the stream of a hub's log.
func HubStream(hub domain.HubID) string { return "HUB_" + string(hub) }

// LogFilter matches everything in a hub's log. It is the one subject of its stream.
func LogFilter(hub domain.HubID) string { return "log." + string(hub) + ".>" }

// EventFilter matches the events of a hub's log, those of the hub and those of the cloud.
func EventFilter(hub domain.HubID) string { return "log." + string(hub) + ".event.>" }

// DeviceSubject holds the events that come from the hub.
func DeviceSubject(hub domain.HubID) string { return "log." + string(hub) + ".event.device" }

// LinkSubject holds the cloud's own `hub.*` events.
func LinkSubject(hub domain.HubID) string { return "log." + string(hub) + ".event.link" }

// CommandSubject holds the commands, as requested and with their outcome.
func CommandSubject(hub domain.HubID) string { return "log." + string(hub) + ".command" }

// FeedDestination is where everything in a hub's log is published again once it is stored; it
// stands for LogFilter.
func FeedDestination(hub domain.HubID) string { return "feed." + string(hub) + ".>" }

// The hub link, in the account of the hub's shard: MQTT topics with a dot for each slash.

// AnyHub stands for every hub in a subject that is subscribed to.
const AnyHub domain.HubID = "*"

// HelloSubject is where a hub says hello.
func HelloSubject(hub domain.HubID) string { return "hub." + string(hub) + ".hello" }

// EventsSubject is where a hub sends its events.
func EventsSubject(hub domain.HubID) string { return "hub." + string(hub) + ".events" }

// AckSubject is where a hub receives acks of stored events.
func AckSubject(hub domain.HubID) string { return "hub." + string(hub) + ".ack" }

// RequestSubject is where a hub receives requests.
func RequestSubject(hub domain.HubID) string { return "hub." + string(hub) + ".request" }

// ResponseSubject is where a hub answers a request with that token: one or more levels, joined by
// dots.
func ResponseSubject(hub domain.HubID, token string) string {
	return "hub." + string(hub) + ".response." + token
}

// ResponseFilter matches all answers of a hub.
func ResponseFilter(hub domain.HubID) string { return "hub." + string(hub) + ".response.>" }

// The directory, in the account CLOUD. Ids in these subjects must be valid ones: an id with a dot
// or a wildcard would name another aggregate.

const (
	// DirectoryStream is the stream of the directory.
	DirectoryStream = "DIRECTORY"
	// DirectoryFilter is its one subject.
	DirectoryFilter = "directory.>"
	// DirectoryFeed is where the directory is published again once it is stored; it stands for
	// DirectoryFilter.
	DirectoryFeed = "feed.directory.>"
)

// OrgSubject holds an organization, its members and invitations.
func OrgSubject(orgID string) string { return "directory.org." + orgID }

// AccountSubject holds the account of an address, by its domain.AccountKey.
func AccountSubject(key string) string { return "directory.account." + key }

// SiteSubject holds a site.
func SiteSubject(orgID, siteID string) string { return "directory.site." + orgID + "." + siteID }

// HubSubject holds a hub: inventory, certificate, owner, place, name, log, names and rooms of its
// devices.
func HubSubject(hub domain.HubID) string { return "directory.hub." + string(hub) }

// KeySubject holds an API key.
func KeySubject(keyID string) string { return "directory.key." + keyID }

// ProjectionSubject holds what operators decided about a projection: events that it steps over.
func ProjectionSubject(projection string) string { return "directory.projection." + projection }

// CommandsSubject is where a process that sends commands answers that it still runs, in the account
// CLOUD.
func CommandsSubject(process string) string { return "hubcloud.commands." + process }

// BarrierSubject is where a replica is asked whether it has applied an event of the directory. In
// the account CLOUD.
func BarrierSubject(replicaID string) string { return "hubcloud.barrier." + replicaID }

// GrantsSubject is where a replica reports to the others how many requests of each API key it has
// admitted, in the account CLOUD.
func GrantsSubject(replicaID string) string { return "hubcloud.grants." + replicaID }
