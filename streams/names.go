package streams

import (
	"fmt"
	"strconv"
	"strings"

	"hubcloud/domain"
)

// Account is the name of an account of the broker.
type Account string

// The accounts besides the shards' and taps'.
const (
	AccountSys   Account = "SYS"
	AccountCloud Account = "CLOUD"
)

// MaxShards is the most shards that an installation may have.
const MaxShards = 256

// ShardAccount returns the account of a shard, whose number begins with 0.
func ShardAccount(i int) Account { return Account(fmt.Sprintf("SHARD%02d", i)) }

// ShardOf returns the shard of a hub: FNV-1a, 32 bits, of its id, modulo the number of shards,
// which must be above 0. It must never change, because it decides in which account a hub's log is.
func ShardOf(hub domain.HubID, shards int) int {
	h := uint32(2166136261)
	for i := range len(hub) {
		h = (h ^ uint32(hub[i])) * 16777619
	}
	return int(h % uint32(shards))
}

// A hub's log, in the account of its shard.

// HubStream returns the name of the stream of a hub's log.
func HubStream(hub domain.HubID) string { return "HUB_" + string(hub) }

// HubOfStream returns the hub whose log a stream of that name is; false if it is none.
func HubOfStream(name string) (domain.HubID, bool) {
	id, isLog := strings.CutPrefix(name, HubStream(""))
	hub, valid := domain.ParseHubID(id)
	return hub, isLog && valid
}

// LogFilter matches every message of a hub's log. It is the only subject of the log's stream.
func LogFilter(hub domain.HubID) string { return "log." + string(hub) + ".>" }

// HubEventSubject is the subject of the hub's own events. Its last token is from an older name.
func HubEventSubject(hub domain.HubID) string { return "log." + string(hub) + ".event.device" }

// CloudEventSubject is the subject of the `hub.*` events, which the cloud writes. Its last token is
// from an older name.
func CloudEventSubject(hub domain.HubID) string { return "log." + string(hub) + ".event.link" }

// IsEventSubject reports whether a subject of a hub's log belongs to an event rather than to a
// command.
func IsEventSubject(subject string) bool {
	_, rest, _ := strings.Cut(subject, ".")
	_, kind, _ := strings.Cut(rest, ".")
	return strings.HasPrefix(kind, "event.")
}

// CommandSubject is the subject of commands, as requested and with their outcome.
func CommandSubject(hub domain.HubID) string { return "log." + string(hub) + ".command" }

// FeedDestination is where the broker republishes every message of a hub's log: a single message
// once it is on disk, the messages of a batch before. It replaces LogFilter in the message's
// subject.
func FeedDestination(hub domain.HubID) string { return "feed." + string(hub) + ".>" }

// FeedSubject returns the subject on the feed of a message with that subject in a hub's log.
func FeedSubject(subject string) string { return "feed." + strings.TrimPrefix(subject, "log.") }

// ParseFeedSubject returns the hub of a subject that FeedDestination matches, without checking the
// id.
func ParseFeedSubject(subject string) domain.HubID {
	_, rest, _ := strings.Cut(subject, ".")
	hub, _, _ := strings.Cut(rest, ".")
	return domain.HubID(hub)
}

// The hub link, in the account of the hub's shard: MQTT topics with a dot for each slash.

// AnyHub stands for every hub in a subject that is subscribed to.
const AnyHub domain.HubID = "*"

// ParseHubSubject returns the hub of a subject of the hub link, without checking the id, and the
// topic, such as "hello".
func ParseHubSubject(subject string) (hub domain.HubID, topic string) {
	id, topic, _ := strings.Cut(strings.TrimPrefix(subject, "hub."), ".")
	return domain.HubID(id), topic
}

// HelloSubject is where a hub sends its hello.
func HelloSubject(hub domain.HubID) string { return "hub." + string(hub) + ".hello" }

// EventsSubject is where a hub sends its events.
func EventsSubject(hub domain.HubID) string { return "hub." + string(hub) + ".events" }

// AckSubject is where a hub receives acks of stored events.
func AckSubject(hub domain.HubID) string { return "hub." + string(hub) + ".ack" }

// RequestSubject is where a hub receives requests.
func RequestSubject(hub domain.HubID) string { return "hub." + string(hub) + ".request" }

// ResponseSubject is where a hub answers the request with a token. The token has one or more
// levels, separated by dots.
func ResponseSubject(hub domain.HubID, token string) string {
	return "hub." + string(hub) + ".response." + token
}

// ResponseFilter matches all responses of a hub.
func ResponseFilter(hub domain.HubID) string { return "hub." + string(hub) + ".response.>" }

// The journals, in the account CLOUD. The shards are divided into groups, each of which has one
// journal.

// JournalIndexStream is the stream of snapshots of what all journals hold.
const JournalIndexStream = "JOURNAL_INDEX"

// JournalIndexFilter is the only subject of JournalIndexStream.
const JournalIndexFilter = "journalindex.>"

// JournalStream returns the name of the stream of a group's journal.
func JournalStream(group int) string { return "JOURNAL_" + strconv.Itoa(group) }

// JournalSubject is the only subject of a journal.
func JournalSubject(group int) string { return "journal." + strconv.Itoa(group) }

// JournalFeed is where the broker republishes every commit of a journal once it is stored.
func JournalFeed(group int) string { return "journalfeed." + strconv.Itoa(group) }

// JournalIndexSubject is the subject of a part of the snapshot of a journal.
func JournalIndexSubject(group, part int) string {
	return "journalindex." + strconv.Itoa(group) + "." + strconv.Itoa(part)
}

// The directory, in the account CLOUD. Ids in these subjects must be valid: an id with a dot or a
// wildcard would be the subject of another aggregate.

const (
	// DirectoryStream is the stream of the directory.
	DirectoryStream = "DIRECTORY"
	// DirectoryFilter is the only subject of DirectoryStream.
	DirectoryFilter = "directory.>"
	// DirectoryFeed is where the broker republishes every event of the directory, also the events
	// of a batch that is not on disk yet. It replaces DirectoryFilter in the event's subject.
	DirectoryFeed = "feed.directory.>"
)

// OrgSubject is the subject of an organization, with its members and invitations.
func OrgSubject(orgID string) string { return "directory.org." + orgID }

// AccountSubject is the subject of the account of an address, by its domain.AccountKey.
func AccountSubject(key string) string { return "directory.account." + key }

// SiteSubject is the subject of a site.
func SiteSubject(orgID, siteID string) string { return "directory.site." + orgID + "." + siteID }

// HubSubject is the subject of a hub: its inventory, certificate, organization, site, name, log,
// and the names and rooms of its devices.
func HubSubject(hub domain.HubID) string { return "directory.hub." + string(hub) }

// KeySubject is the subject of an API key.
func KeySubject(keyID string) string { return "directory.key." + keyID }

// WebhooksSubject is the subject of the webhooks of an organization. With "*" it is the filter of all
// webhooks.
func WebhooksSubject(orgID string) string { return "directory.webhooks." + orgID }

// BookStream is the stream of the books of organizations, BookFilter its only subject.
const BookStream, BookFilter = "BOOK", "book.>"

// BookEntrySubject is the subject of the entries of an organization's book of a hub and a kind.
func BookEntrySubject(orgID, hub, kind string) string {
	return "book.entry." + orgID + "." + hub + "." + kind
}

// BookCutSubject is the subject of what is deleted from an organization's book.
func BookCutSubject(orgID string) string { return "book.cut." + orgID }

// LostSubject is the subject of the events that stand in the places of lost ones.
const LostSubject = "directory.lost"

// ProjectionSubject is the subject of operators' decisions that a projection skips an event.
func ProjectionSubject(projection string) string { return "directory.projection." + projection }

// LivenessSubject is where a process that holds idempotency keys is asked whether it still runs, in
// the account CLOUD.
func LivenessSubject(process string) string { return "hubcloud.commands." + process }

// BarrierSubject is where a replica is asked whether it has applied an event of the directory, in
// the account CLOUD.
func BarrierSubject(replicaID string) string { return "hubcloud.barrier." + replicaID }

// GrantsSubject is where a replica reports to the others how many requests of each API key it has
// admitted, in the account CLOUD.
func GrantsSubject(replicaID string) string { return "hubcloud.grants." + replicaID }

// HubFaultsSubject is where the replica that serves a shard answers questions about what its hubs
// do wrong.
func HubFaultsSubject(shard int) string { return fmt.Sprintf("hubcloud.hub-faults.%d", shard) }

// AppendSubject is where the replica that writes a journal receives the appends of the others, in
// the account CLOUD.
func AppendSubject(group int) string { return "hubcloud.append." + strconv.Itoa(group) }
