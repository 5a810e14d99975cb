package bench

import (
	"context"
	"encoding/json"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"
)

const roleDatabase = "database"

// databaseConfig is the database and the number of connections to it.
type databaseConfig struct {
	URL     string
	Readers int
}

// bareDatabase runs queries without the service.
type bareDatabase struct {
	pool    *pgxpool.Pool
	readers int
}

func runBareDatabase(config []byte, control *http.ServeMux) (bareReady, error) {
	var cfg databaseConfig
	if err := json.Unmarshal(config, &cfg); err != nil {
		return bareReady{}, err
	}
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, cfg.URL)
	if err != nil {
		return bareReady{}, err
	}
	defer conn.Close(ctx)
	var schema string
	if err := conn.QueryRow(
		ctx, "SELECT name FROM hubcloud.schemas WHERE state = 'live'",
	).Scan(&schema); err != nil {
		return bareReady{}, err
	}
	pooling, err := pgxpool.ParseConfig(cfg.URL)
	if err != nil {
		return bareReady{}, err
	}
	pooling.MaxConns = int32(cfg.Readers)
	pooling.ConnConfig.RuntimeParams["search_path"] = schema
	pool, err := pgxpool.NewWithConfig(ctx, pooling)
	if err != nil {
		return bareReady{}, err
	}
	database := &bareDatabase{pool: pool, readers: cfg.Readers}
	command(control, "/query", database.query)
	command(control, "/copy", database.copy)
	return bareReady{}, nil
}

// queryCommand makes every reader repeat a query.
type queryCommand struct {
	SQL    string
	Args   []json.RawMessage
	During time.Duration
}

type queryResult struct {
	PerSecond float64
	// Rows is the number of rows that the query returns.
	Rows int
}

func (d *bareDatabase) query(c queryCommand) (queryResult, error) {
	args := make([]any, len(c.Args))
	for i, raw := range c.Args {
		var number int64
		if err := json.Unmarshal(raw, &number); err == nil {
			args[i] = number
			continue
		}
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return queryResult{}, err
		}
		args[i] = text
	}
	var made, rows atomic.Int64
	deadline := time.Now().Add(c.During)
	var group errgroup.Group
	for range d.readers {
		group.Go(func() error {
			for time.Now().Before(deadline) {
				n, err := d.read(c.SQL, args)
				if err != nil {
					return err
				}
				made.Add(1)
				rows.Store(int64(n))
			}
			return nil
		})
	}
	err := group.Wait()
	return queryResult{
		PerSecond: float64(made.Load()) / c.During.Seconds(),
		Rows:      int(rows.Load()),
	}, err
}

// read runs the query once, reads every value, and returns the number of rows.
func (d *bareDatabase) read(sql string, args []any) (int, error) {
	found, err := d.pool.Query(context.Background(), sql, args...)
	if err != nil {
		return 0, err
	}
	rows, err := pgx.CollectRows(
		found, func(row pgx.CollectableRow) ([]any, error) { return row.Values() },
	)
	return len(rows), err
}
