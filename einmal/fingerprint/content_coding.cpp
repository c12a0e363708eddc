#include "einmal/fingerprint/content_coding.hpp"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <limits>
#include <memory>
#include <new>

#include "einmal/fingerprint/media_type.hpp"

namespace einmal {

namespace {

constexpr std::size_t max_codings = 4;
constexpr int gzip_window = 15 + 16;
constexpr int zlib_window = 15;
constexpr int bare_window = -15;

using Chunk = std::array<char, 16384>;

class Inflater {
 public:
  explicit Inflater(int window_bits) {
    if (inflateInit2(&stream_, window_bits) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  Decoding run(BytesView body, bool several_members, std::size_t limit, Bytes& out) {
    if (body.size() > std::numeric_limits<uInt>::max()) return Decoding::as_sent;
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(body.data()));
    stream_.avail_in = static_cast<uInt>(body.size());
    Chunk chunk;
    for (;;) {
      stream_.next_out = reinterpret_cast<Bytef*>(chunk.data());
      stream_.avail_out = static_cast<uInt>(chunk.size());
      const int result = inflate(&stream_, Z_NO_FLUSH);
      if (result == Z_MEM_ERROR) throw std::bad_alloc();
      if (result != Z_OK && result != Z_STREAM_END) return Decoding::as_sent;
      const std::size_t made = chunk.size() - stream_.avail_out;
      if (made > limit - out.size()) return Decoding::too_large;
      out.append(chunk.data(), made);
      if (result == Z_OK) continue;
      if (stream_.avail_in == 0) return Decoding::decoded;
      if (!several_members) return Decoding::as_sent;
      inflateReset(&stream_);
    }
  }

 private:
  z_stream stream_{};
};

Decoding inflate_gzip(BytesView body, std::size_t limit, Bytes& out) {
  return Inflater(gzip_window).run(body, true, limit, out);
}

Decoding inflate_deflate(BytesView body, std::size_t limit, Bytes& out) {
  const Decoding result = Inflater(zlib_window).run(body, false, limit, out);
  if (result != Decoding::as_sent) return result;
  out.clear();
  return Inflater(bare_window).run(body, false, limit, out);
}

Decoding decompress_zstd(BytesView body, std::size_t limit, Bytes& out) {
  if (body.empty()) return Decoding::as_sent;
  const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(),
                                                                     &ZSTD_freeDCtx);
  if (!context) throw std::bad_alloc();
  ZSTD_DCtx_setParameter(context.get(), ZSTD_d_windowLogMax, 23);
  ZSTD_inBuffer in{body.data(), body.size(), 0};
  Chunk chunk;
  for (;;) {
    ZSTD_outBuffer made{chunk.data(), chunk.size(), 0};
    const std::size_t result = ZSTD_decompressStream(context.get(), &made, &in);
    if (ZSTD_isError(result)) return Decoding::as_sent;
    if (made.pos > limit - out.size()) return Decoding::too_large;
    out.append(chunk.data(), made.pos);
    if (result == 0 && in.pos == in.size) return Decoding::decoded;
    if (in.pos == in.size && made.pos < chunk.size()) return Decoding::as_sent;
  }
}

using Decoder = Decoding (*)(BytesView, std::size_t, Bytes&);

Decoder decoder_of(std::string_view coding) {
  if (coding == "gzip") return inflate_gzip;
  if (coding == "deflate") return inflate_deflate;
  if (coding == "zstd") return decompress_zstd;
  return nullptr;
}

Bytes compress_gzip(BytesView body) {
  z_stream stream{};
  constexpr int memory_level = 8;
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, gzip_window, memory_level,
                   Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::bad_alloc();
  Bytes out(deflateBound(&stream, body.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(body.data()));
  stream.avail_in = static_cast<uInt>(body.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int result = deflate(&stream, Z_FINISH);
  assert(result == Z_STREAM_END && "deflateBound bounds one call");
  static_cast<void>(result);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

Bytes compress_zstd(BytesView body) {
  Bytes out(ZSTD_compressBound(body.size()), '\0');
  const std::size_t size = ZSTD_compress(out.data(), out.size(), body.data(), body.size(), 1);
  if (ZSTD_isError(size)) throw std::bad_alloc();
  out.resize(size);
  return out;
}

}  // namespace

std::vector<std::string> content_codings(const http::HeaderLines& headers) {
  std::vector<std::string> codings;
  for (const auto& line : headers) {
    if (line.name.size() != 16 || !http::iequals(line.name, "content-encoding")) continue;
    std::string_view rest = line.value;
    while (const auto element = http::next_list_element(rest)) {
      std::string coding = lower_case(*element);
      if (coding == "identity") continue;
      codings.push_back(coding == "x-gzip" ? "gzip" : std::move(coding));
    }
  }
  return codings;
}

Decoding decode_body(const std::vector<std::string>& codings, BytesView body, std::size_t limit,
                     Bytes& out) {
  const auto known = [](const std::string& coding) { return decoder_of(coding) != nullptr; };
  if (codings.size() > max_codings || !std::all_of(codings.begin(), codings.end(), known)) {
    return Decoding::as_sent;
  }
  Bytes stage;
  for (auto coding = codings.rbegin(); coding != codings.rend(); ++coding) {
    out.clear();
    const Decoding result = decoder_of(*coding)(body, limit, out);
    if (result != Decoding::decoded) return result;
    stage = std::move(out);
    body = stage;
  }
  out = std::move(stage);
  return Decoding::decoded;
}

Bytes encode_body(std::string_view coding, BytesView body) {
  assert((coding == "gzip" || coding == "zstd") && body.size() <= std::numeric_limits<uInt>::max());
  return coding == "zstd" ? compress_zstd(body) : compress_gzip(body);
}

}  // namespace einmal
