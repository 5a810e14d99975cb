package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// errNoDatabase reports that the database's URL is unknown.
var errNoDatabase = errors.New("the database's URL is unknown")

// databaseFacts are the checked facts of the database. now is the time of its clock, read between
// before and after.
type databaseFacts struct {
	version, encoding, name      string
	bytes                        int64
	used, limit                  int // connections
	standby, readOnly, mayCreate bool
	// pooled means that a connection pooler stands in between.
	pooled             bool
	now, before, after time.Time
}

const databaseQuery = `
SELECT current_setting('server_version'), current_setting('server_encoding'), current_database(), pg_database_size(current_database()),
    (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
    current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int,
    pg_is_in_recovery(), current_setting('transaction_read_only')::bool, has_database_privilege(current_database(), 'CREATE'), clock_timestamp(),
    pg_backend_pid()`

// askDatabase connects to the database and returns its facts.
func askDatabase(ctx context.Context, url string) (facts databaseFacts, err error) {
	if url == "" {
		return facts, errNoDatabase
	}
	config, err := pgx.ParseConfig(url)
	if err != nil {
		// The cause may contain the password.
		return facts, errors.New("its URL is not like postgres://USER:PASSWORD@HOST/DATABASE")
	}
	config.RuntimeParams["application_name"] = "hubcloud doctor"
	config.DefaultQueryExecMode = pgx.QueryExecModeExec // also through a pooler
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return facts, err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(closing) // the facts are read by then
	}()
	var session uint32
	facts.before = time.Now()
	err = conn.QueryRow(ctx, databaseQuery).
		Scan(&facts.version, &facts.encoding, &facts.name, &facts.bytes, &facts.used, &facts.limit,
			&facts.standby, &facts.readOnly, &facts.mayCreate, &facts.now, &session)
	facts.after = time.Now()
	facts.pooled = session != conn.PgConn().PID() // a pooler makes up the id of the greeting
	return facts, err
}

// checkPostgres checks the database's connection, encoding, access rights and free connections.
func checkPostgres(_ context.Context, t *target, f *findings) {
	facts, err := t.database()
	if err != nil {
		databaseAway(t, f, err)
		return
	}
	f.note("PostgreSQL %s, database %s of %s", facts.version, facts.name, Size(facts.bytes))
	if facts.encoding != "UTF8" {
		f.wrong("its encoding is %s", facts.encoding).todo(
			"create a database with ENCODING 'UTF8' and name it with --postgres-url; the service " +
				"fills it",
		)
	}
	if facts.pooled {
		f.wrong("it is reached through a connection pooler").todo(
			"give --postgres-url the address of PostgreSQL itself: the service needs sessions of " +
				"its own",
		)
	}
	switch {
	case facts.standby:
		f.wrong("it is a standby, which rejects writes").todo(
			"name the primary with --postgres-url (target_session_attrs=read-write finds it)",
		)
	case facts.readOnly:
		f.wrong("it rejects writes: its transactions are read-only").todo(
			"reset default_transaction_read_only",
		)
	}
	if !facts.mayCreate {
		f.wrong("the user may not create schemas").todo(
			fmt.Sprintf("GRANT CREATE ON DATABASE %s TO the user of --postgres-url", facts.name),
		)
	}
	left := facts.limit - facts.used
	f.grade(
		verdictIf(left < t.Limits.Connections, Wrong),
		"raise max_connections, or find out who uses them: SELECT application_name, count(*) "+
			"FROM pg_stat_activity GROUP BY 1",
		"%d of %d connections are free", left, facts.limit,
	)
}

// databaseAway reports a database that cannot be reached.
func databaseAway(t *target, f *findings, err error) {
	private := t.Started != nil && !t.Started.ExternalDatabase
	switch {
	case errors.Is(err, errNoDatabase) && t.DataDir == "":
		f.skip("%v", err).todo("name it with --postgres-url to check it")
	case errors.Is(err, fs.ErrPermission):
		f.unclear("%v", err).todo(
			"run the doctor as the user of the service: the database's URL may contain a password",
		)
	case errors.Is(err, errNoDatabase):
		f.unclear("%v", err).todo(
			"name it with --postgres-url; the service writes it to postgres.json in its data " +
				"directory",
		)
	case private && !t.running():
		f.unclear("the private database runs only while the service does").todo("start the service")
	case private:
		f.wrong("the private database does not answer: %v", withoutLogin(err)).todo(
			"see the service's log, and the database's log under postgres/ in the data " +
				"directory; a lost database is built again from the streams",
		)
	default:
		f.wrong("cannot be reached: %v", withoutLogin(err)).todo(
			"check whether it runs, whether a firewall blocks the connection, and whether user " +
				"and password of --postgres-url are right",
		)
	}
}

var passwords = regexp.MustCompile(`://[^@/\s]*@`)

// withoutLogin removes user and password of URLs from an error.
func withoutLogin(err error) error {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		return fmt.Errorf("%s (SQLSTATE %s)", pgErr.Message, pgErr.Code)
	}
	return errors.New(passwords.ReplaceAllString(err.Error(), "://…@"))
}
